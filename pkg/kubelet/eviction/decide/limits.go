/*
Copyright The kubelet-eviction Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package decide

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

// Causes of an eviction that are no signals; kubelet_evictions has them as
// labels.
const (
	CauseEmptyDirLimit  = "emptydirfs.limit"
	CausePodLimit       = "ephemeralpodfs.limit"
	CauseContainerLimit = "ephemeralcontainerfs.limit"
)

// overLimit finds the pods that use more local storage than they may, in the
// order of the pods; of several limits that a pod exceeds the first counts:
// volumes, the pod, containers.
func overLimit(policy Policy, pods []*v1.Pod, seen observe.Snapshot) (evictions []Eviction, critical []*v1.Pod) {
	for _, pod := range pods {
		stats := seen.PodStats(pod.UID)
		if stats == nil || policy.Evidence && finished(pod) || withinEveryLimit(pod, observe.MostHeld(stats)) {
			continue
		}
		found, exceeded := exceededVolume(policy, pod, stats)
		if !exceeded {
			found, exceeded = exceededPod(pod, stats)
		}
		if !exceeded {
			found, exceeded = exceededContainer(policy, pod, stats)
		}
		switch {
		case !exceeded:
		case rank.Critical(pod):
			critical = append(critical, pod)
		default:
			evictions = append(evictions, found)
		}
	}
	return evictions, critical
}

// withinEveryLimit says, at the least cost, whether a pod cannot exceed a limit
// because each of them allows all that the pod holds together. This is so for
// nearly every pod in nearly every pass. A pod's limit is never less than one of
// its containers', unless its overhead is negative.
func withinEveryLimit(pod *v1.Pod, held int64) bool {
	if overhead, given := pod.Spec.Overhead[v1.ResourceEphemeralStorage]; given && overhead.Sign() < 0 {
		return false
	}
	for i := range pod.Spec.Volumes {
		if emptyDir := pod.Spec.Volumes[i].EmptyDir; emptyDir != nil && emptyDir.SizeLimit != nil && !allows(emptyDir.SizeLimit, held) {
			return false
		}
	}
	return containersAllow(pod.Spec.Containers, held) && containersAllow(pod.Spec.InitContainers, held)
}

func containersAllow(containers []v1.Container, held int64) bool {
	for i := range containers {
		if limit, given := containers[i].Resources.Limits[v1.ResourceEphemeralStorage]; given && !allows(&limit, held) {
			return false
		}
	}
	return true
}

func allows(limit *resource.Quantity, held int64) bool {
	whole, exact := limit.AsInt64()
	// The largest int64 stands for whatever is more.
	return exact && whole >= held && held < math.MaxInt64
}

func limitEviction(pod *v1.Pod, cause, message string) Eviction {
	return Eviction{Pod: pod, GracePeriodSeconds: immediateGracePeriodSeconds, Cause: cause, Message: message}
}

// exceededVolume looks for an emptyDir volume that is larger than its size
// limit. A volume whose use is unknown exceeds nothing (#50889).
func exceededVolume(policy Policy, pod *v1.Pod, stats *statsapi.PodStats) (Eviction, bool) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.EmptyDir == nil || volume.EmptyDir.SizeLimit == nil {
			continue
		}
		// What is held in memory is no local storage; upstream counts it unless the
		// kernel does.
		if volume.EmptyDir.Medium == v1.StorageMediumMemory && (policy.KernelLimitsMemoryVolumes || policy.Evidence) {
			continue
		}
		size := volume.EmptyDir.SizeLimit
		used, known := observe.LastVolumeUsed(stats, volume.Name)
		if known && size.Sign() > 0 && used.Cmp(observe.AmountOf(size)) > 0 {
			return limitEviction(pod, CauseEmptyDirLimit,
				fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", volume.Name, size.String())), true
		}
	}
	return Eviction{}, false
}

// exceededPod compares the pod's whole ephemeral storage with its limit.
func exceededPod(pod *v1.Pod, stats *statsapi.PodStats) (Eviction, bool) {
	limit, limited := rank.EphemeralStorageLimit(pod)
	if !limited || observe.BytesUsed(stats.EphemeralStorage).Cmp(limit) <= 0 {
		return Eviction{}, false
	}
	// As text the limit has the notation that the pod's author chose.
	written := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
	return limitEviction(pod, CausePodLimit,
		fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", written.String())), true
}

// exceededContainer compares what each container writes with its own limit:
// its log, and its root filesystem unless that lies on a filesystem of its own.
func exceededContainer(policy Policy, pod *v1.Pod, stats *statsapi.PodStats) (Eviction, bool) {
	for i := range stats.Containers {
		container := &stats.Containers[i]
		used := observe.BytesUsed(container.Logs)
		if !policy.Layout.DedicatedImageFs {
			used = used.Add(observe.BytesUsed(container.Rootfs))
		}
		limit := containerLimit(policy, pod, container.Name)
		if limit == nil {
			continue
		}
		if used.Cmp(observe.AmountOf(limit)) > 0 {
			return limitEviction(pod, CauseContainerLimit,
				fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", container.Name, limit.String())), true
		}
	}
	return Eviction{}, false
}

// containerLimit returns the limit of ephemeral storage of the sidecar or else
// the container of that name, the last one that sets any; nil when there is
// none. Upstream does not hold init containers that end to a limit, and takes
// one of 0, or of more than fits in 64 bits, for none.
func containerLimit(policy Policy, pod *v1.Pod, name string) *resource.Quantity {
	if policy.Evidence || !policy.IgnoresSidecarLimits {
		if limit := lastLimit(pod.Spec.InitContainers, name, rank.Restartable); limit != nil {
			return limit
		}
	}
	return lastLimit(pod.Spec.Containers, name, func(*v1.Container) bool { return true })
}

func lastLimit(containers []v1.Container, name string, runsOn func(*v1.Container) bool) *resource.Quantity {
	for _, c := range slices.Backward(containers) {
		if c.Name != name || !runsOn(&c) {
			continue
		}
		if limit := c.Resources.Limits.StorageEphemeral(); limit.Value() != 0 {
			return limit
		}
	}
	return nil
}
