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

package simnode

import (
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// simPod is a pod and what became of it.
type simPod struct {
	PodSpec
	api *v1.Pod
	// killedAt is when its kill had succeeded; negative while it has not.
	killedAt time.Duration
	// stopsAt is when it will have stopped, since it was told to; 0 before.
	stopsAt time.Duration
	// ignored is how many kills did nothing.
	ignored int64
	// lastEvent is the message of the last event about the pod.
	lastEvent string
}

const never = time.Duration(-1)

// Names of a pod's volumes.
const (
	emptyDirVolume = "data"
	hostPathVolume = "host"
)

func newPod(spec PodSpec) *simPod {
	spec.Containers = max(1, spec.Containers)
	api := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Namespace: "default", UID: types.UID("uid-" + spec.Name), Generation: 3},
		Spec:       v1.PodSpec{Priority: spec.Priority, TerminationGracePeriodSeconds: spec.GraceSeconds},
	}
	switch {
	case spec.Static:
		api.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	case spec.Mirror:
		api.Annotations = map[string]string{"kubernetes.io/config.source": "api", v1.MirrorPodAnnotationKey: "x"}
	default:
		api.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
	}
	for i := range spec.Containers {
		api.Spec.Containers = append(api.Spec.Containers, v1.Container{Name: containerName(i)})
	}
	first := &api.Spec.Containers[0].Resources
	first.Requests = list(v1.ResourceMemory, spec.MemoryRequest, v1.ResourceEphemeralStorage, spec.DiskRequest)
	first.Limits = list(v1.ResourceEphemeralStorage, spec.DiskLimit)
	if spec.PodMemoryRequest != "" {
		api.Spec.Resources = &v1.ResourceRequirements{Requests: list(v1.ResourceMemory, spec.PodMemoryRequest)}
	}
	if spec.MemoryOverhead != "" {
		api.Spec.Overhead = list(v1.ResourceMemory, spec.MemoryOverhead)
	}
	if spec.SidecarDiskLimit != "" {
		always := v1.ContainerRestartPolicyAlways
		api.Spec.InitContainers = []v1.Container{{
			Name: "sidecar", RestartPolicy: &always,
			Resources: v1.ResourceRequirements{Limits: list(v1.ResourceEphemeralStorage, spec.SidecarDiskLimit)},
		}}
	}
	emptyDir := &v1.EmptyDirVolumeSource{}
	if spec.VolumeLimit != "" {
		limit := resource.MustParse(spec.VolumeLimit)
		emptyDir.SizeLimit = &limit
	}
	api.Spec.Volumes = []v1.Volume{
		{Name: emptyDirVolume, VolumeSource: v1.VolumeSource{EmptyDir: emptyDir}},
		{Name: hostPathVolume, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv"}}},
	}
	if spec.Finished {
		api.Spec.RestartPolicy = v1.RestartPolicyNever
		for _, container := range api.Spec.Containers {
			api.Status.ContainerStatuses = append(api.Status.ContainerStatuses, v1.ContainerStatus{
				Name: container.Name, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}},
			})
		}
	}
	return &simPod{PodSpec: spec, api: api, killedAt: never}
}

func containerName(i int64) string {
	return string(rune('a' + i))
}

func list(pairs ...any) v1.ResourceList {
	resources := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		if text := pairs[i+1].(string); text != "" {
			resources[pairs[i].(v1.ResourceName)] = resource.MustParse(text)
		}
	}
	return resources
}

// running says whether the pod runs at a time.
func (p *simPod) running(at time.Duration) bool {
	return at >= p.Starts && (p.Ends == 0 || at < p.Ends) && (p.killedAt == never || at < p.killedAt)
}

// holdsDisk says whether the pod's files are still there at a time.
func (p *simPod) holdsDisk(at time.Duration) bool {
	return at >= p.Starts && (p.killedAt == never || at < p.killedAt+p.Release)
}

// use returns the value of a curve at a time, in the pod's own life; files stay
// as they were at its end.
func (p *simPod) use(curve Curve, at time.Duration) int64 {
	if p.killedAt != never {
		at = min(at, p.killedAt)
	}
	if p.Ends != 0 {
		at = min(at, p.Ends)
	}
	return curve.At(at - p.Starts)
}

// disk returns what the pod holds on its layers' filesystem and on nodefs
// besides, in bytes and in inodes.
func (p *simPod) disk(at time.Duration) (layers, other, layerInodes, otherInodes int64) {
	if !p.holdsDisk(at) {
		return 0, 0, 0, 0
	}
	return p.use(p.Layer, at), p.use(p.Logs, at) + p.use(p.Volume, at), p.use(p.LayerInodes, at), p.use(p.VolumeInodes, at)
}

func (p *simPod) stats(at time.Duration) statsapi.PodStats {
	unsigned := func(n int64) *uint64 {
		if p.AbsurdUse != "" {
			return absurd(p.AbsurdUse)
		}
		return unsigned(n)
	}
	stats := statsapi.PodStats{
		PodRef:       statsapi.PodReference{Name: p.Name, Namespace: "default", UID: string(p.api.UID)},
		ProcessStats: &statsapi.ProcessStats{ProcessCount: unsigned(p.use(p.Processes, at))},
	}
	if !p.NoMemoryStats {
		stats.Memory = &statsapi.MemoryStats{WorkingSetBytes: unsigned(p.use(p.Memory, at))}
		if p.Stall != (Curve{}) {
			stats.Memory.PSI = psi(float64(min(p.use(p.Stall, at), 100)))
		}
	}
	if p.Swap != (Curve{}) {
		stats.Swap = &statsapi.SwapStats{SwapUsageBytes: unsigned(p.use(p.Swap, at))}
	}
	layer, logs := p.use(p.Layer, at), p.use(p.Logs, at)
	for i := range p.Containers {
		container := statsapi.ContainerStats{Name: containerName(i)}
		if !p.NoMemoryStats {
			container.Memory = &statsapi.MemoryStats{WorkingSetBytes: unsigned(p.use(p.Memory, at) / p.Containers)}
		}
		if !p.NoDiskStats {
			container.Rootfs = &statsapi.FsStats{UsedBytes: unsigned(layer / p.Containers), InodesUsed: unsigned(p.use(p.LayerInodes, at) / p.Containers)}
			container.Logs = &statsapi.FsStats{UsedBytes: unsigned(logs / p.Containers)}
		}
		stats.Containers = append(stats.Containers, container)
	}
	if p.SidecarDiskLimit != "" && !p.NoDiskStats {
		stats.Containers = append(stats.Containers, statsapi.ContainerStats{Name: "sidecar", Logs: &statsapi.FsStats{UsedBytes: unsigned(logs)}})
	}
	if p.NoDiskStats {
		return stats
	}
	volume := p.use(p.Volume, at)
	stats.EphemeralStorage = &statsapi.FsStats{UsedBytes: unsigned(layer + logs + volume)}
	stats.VolumeStats = []statsapi.VolumeStats{
		{Name: emptyDirVolume, FsStats: statsapi.FsStats{UsedBytes: unsigned(volume), InodesUsed: unsigned(p.use(p.VolumeInodes, at))}},
		{Name: hostPathVolume, FsStats: statsapi.FsStats{UsedBytes: unsigned(p.use(p.Host, at))}},
	}
	return stats
}

func unsigned(n int64) *uint64 {
	u := uint64(n)
	return &u
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// absurd parses any number of 64 bits; what is none is 0.
func absurd(text string) *uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return &n
}
