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
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Keys of an eviction event's annotations. Their names are upstream's, and the
// manager's package exports them.
const (
	OffendingContainersKey      = "offending_containers"
	OffendingContainersUsageKey = "offending_containers_usage"
	OffendingPodKey             = "offending_pod"
	OffendingPodUsageKey        = "offending_pod_usage"
	StarvedResourceKey          = "starved_resource"
)

// Explain writes why a pod is evicted for a shortage: the message, in
// upstream's words down to the blank at its end, since people match it, and the
// annotations of the event.
func Explain(shortage *Shortage, pod *v1.Pod, seen observe.Snapshot, podLevelResources bool) (string, map[string]string) {
	var message strings.Builder
	starved := shortage.Resource
	signal := shortage.Threshold.Signal
	fmt.Fprintf(&message, "The node was low on resource: %v. ", starved)
	observation, found := seen.Observations[signal]
	switch traits, _ := observe.TraitsOf(signal); {
	case !found:
	case traits.Stall != observe.NoStall:
		fmt.Fprintf(&message, "Threshold of %v: %s, was: %s. ", signal,
			observe.Percent(observation.Capacity-threshold.Quantity(shortage.Threshold, observation.Capacity).Value()), observe.Percent(observation.Capacity-observation.Available))
	default:
		fmt.Fprintf(&message, "Threshold quantity: %v, available: %v. ",
			threshold.Quantity(shortage.Threshold, observation.Capacity), observe.Quantity(signal, observation.Available))
	}
	annotations := map[string]string{}
	stats := seen.PodStats(pod.UID)
	if stats == nil {
		return message.String(), annotations
	}
	consumed := func(kind, name string, used, request *resource.Quantity) {
		fmt.Fprintf(&message, "%s %s was using %s, request is %s, has larger consumption of %v. ", kind, name, used, request, starved)
	}

	if starved == v1.ResourceMemory && podLevelResources && resourcehelper.IsPodLevelResourcesSet(pod) && stats.Memory != nil {
		if request, given := pod.Spec.Resources.Requests[starved]; given {
			used := bytes(stats.Memory.WorkingSetBytes)
			consumed("Pod", pod.Name, used, &request)
			annotations[OffendingPodKey] = pod.Name
			annotations[OffendingPodUsageKey] = used.String()
		}
	}
	var names, usages []string
	for i := range stats.Containers {
		container := containerOf(pod, stats.Containers[i].Name)
		used := containerUse(&stats.Containers[i], starved)
		if container == nil || used == nil {
			continue
		}
		if request := container.Resources.Requests[starved]; used.Cmp(request) > 0 {
			consumed("Container", container.Name, used, &request)
			names = append(names, container.Name)
			usages = append(usages, used.String())
		}
	}
	annotations[OffendingContainersKey] = strings.Join(names, ",")
	annotations[OffendingContainersUsageKey] = strings.Join(usages, ",")
	annotations[StarvedResourceKey] = string(starved)
	return message.String(), annotations
}

// bytes writes a number of bytes; 0 when unknown.
func bytes(n *uint64) *resource.Quantity {
	if n == nil {
		return resource.NewQuantity(0, resource.BinarySI)
	}
	return resource.NewQuantity(int64(*n), resource.BinarySI)
}

// containerUse returns what a container uses of memory, or of ephemeral storage
// where both its parts are known; nil for anything else or unknown.
func containerUse(stats *statsapi.ContainerStats, starved v1.ResourceName) *resource.Quantity {
	switch {
	case starved == v1.ResourceMemory && stats.Memory != nil && stats.Memory.WorkingSetBytes != nil:
		return bytes(stats.Memory.WorkingSetBytes)
	case starved == v1.ResourceEphemeralStorage &&
		stats.Rootfs != nil && stats.Rootfs.UsedBytes != nil && stats.Logs != nil && stats.Logs.UsedBytes != nil:
		sum := *stats.Rootfs.UsedBytes + *stats.Logs.UsedBytes
		return bytes(&sum)
	}
	return nil
}

// containerOf returns the container or init container of that name. Ephemeral
// containers cannot request anything, so it would always be them.
func containerOf(pod *v1.Pod, name string) *v1.Container {
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Name == name {
				return &containers[i]
			}
		}
	}
	return nil
}
