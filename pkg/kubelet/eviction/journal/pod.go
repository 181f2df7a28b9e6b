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

package journal

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Pod is what a step knows of a pod: what orders it, what limits it and what it
// holds.
type Pod struct {
	PodRef
	Priority     *int32 `json:"priority,omitempty"`
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
	// Source is where the kubelet has the pod from, unless that is the API server;
	// any other makes it critical. Mirror pods are those of static ones.
	Source string `json:"source,omitempty"`
	Mirror bool   `json:"mirror,omitempty"`
	// Owner is the kind and the name of the controller.
	Owner         string           `json:"owner,omitempty"`
	RestartPolicy v1.RestartPolicy `json:"restartPolicy,omitempty"`
	Phase         v1.PodPhase      `json:"phase,omitempty"`

	Containers     []Container `json:"containers,omitempty"`
	InitContainers []Container `json:"initContainers,omitempty"`
	Volumes        []Volume    `json:"volumes,omitempty"`
	// Statuses is how many containers have a status, and Ended the exit codes of
	// those that have ended, by name.
	Statuses int              `json:"statuses,omitempty"`
	Ended    map[string]int32 `json:"ended,omitempty"`
	// Requests and Limits of the pod itself.
	Requests map[v1.ResourceName]string `json:"requests,omitempty"`
	Limits   map[v1.ResourceName]string `json:"limits,omitempty"`
	Overhead map[v1.ResourceName]string `json:"overhead,omitempty"`

	// Stats are absent when there were none, and Recalled are those of a while ago
	// that stood in for what they do not say.
	Stats    *Stats    `json:"stats,omitempty"`
	Recalled *Recalled `json:"recalled,omitempty"`
}

// Recalled are stats of a while ago.
type Recalled struct {
	Age   Seconds `json:"age"`
	Stats Stats   `json:"stats"`
}

// Container is what a container asks for and may hold, of memory and of
// ephemeral storage.
type Container struct {
	Name     string                     `json:"name"`
	Requests map[v1.ResourceName]string `json:"requests,omitempty"`
	Limits   map[v1.ResourceName]string `json:"limits,omitempty"`
	// Sidecar: an init container that goes on running.
	Sidecar bool `json:"sidecar,omitempty"`
}

// Volume is one that is on the node's own disks or has a limit.
type Volume struct {
	Name string `json:"name"`
	// Kind is emptyDir, hostPath, gitRepo or configMap.
	Kind   string           `json:"kind"`
	Medium v1.StorageMedium `json:"medium,omitempty"`
	Limit  string           `json:"limit,omitempty"`
}

// Stats are what a pod and its containers use, in bytes, inodes and processes.
// What is absent is unknown.
type Stats struct {
	// Age of the memory; absent where the source does not say.
	Age       *Seconds `json:"age,omitempty"`
	Memory    *uint64  `json:"memory,omitempty"`
	Processes *uint64  `json:"processes,omitempty"`
	// Swap that it holds, and how much of the time it stood still for want of memory
	// and of IO, where the kubelet has that.
	Swap        *uint64          `json:"swap,omitempty"`
	MemoryStall *Pressure        `json:"memoryStall,omitempty"`
	IOStall     *Pressure        `json:"ioStall,omitempty"`
	Ephemeral   *Disk            `json:"ephemeral,omitempty"`
	Containers  []ContainerStats `json:"containers,omitempty"`
	Volumes     []VolumeStats    `json:"volumes,omitempty"`
}

// ContainerStats are a container's.
type ContainerStats struct {
	Name   string  `json:"name"`
	Memory *uint64 `json:"memory,omitempty"`
	Rootfs *Disk   `json:"rootfs,omitempty"`
	Logs   *Disk   `json:"logs,omitempty"`

	Swap        *uint64   `json:"swap,omitempty"`
	MemoryStall *Pressure `json:"memoryStall,omitempty"`
	IOStall     *Pressure `json:"ioStall,omitempty"`
}

// Pressure is how much of the time some tasks, or all of them, stood still, in percent,
// as averages over 10 and 60 seconds.
type Pressure struct {
	Some10 float64 `json:"some10"`
	Some60 float64 `json:"some60"`
	Full10 float64 `json:"full10"`
	Full60 float64 `json:"full60"`
}

func pressureOf(psi *statsapi.PSIStats) *Pressure {
	if psi == nil || *psi == (statsapi.PSIStats{}) {
		return nil // the kubelet's way to say that it does not know
	}
	p := &Pressure{Some10: psi.Some.Avg10, Some60: psi.Some.Avg60, Full10: psi.Full.Avg10, Full60: psi.Full.Avg60}
	for _, average := range []*float64{&p.Some10, &p.Some60, &p.Full10, &p.Full60} {
		if !(*average >= 0 && *average <= 100) {
			*average = -1 // no JSON is as absurd as a float can be
		}
	}
	return p
}

func (p *Pressure) api() *statsapi.PSIStats {
	if p == nil {
		return nil
	}
	// A total tells zeros from what is not known.
	return &statsapi.PSIStats{Some: statsapi.PSIData{Total: 1, Avg10: p.Some10, Avg60: p.Some60}, Full: statsapi.PSIData{Avg10: p.Full10, Avg60: p.Full60}}
}

func swapOf(swap *statsapi.SwapStats) *uint64 {
	if swap == nil {
		return nil
	}
	return swap.SwapUsageBytes
}

func ioOf(io *statsapi.IOStats) *Pressure {
	if io == nil {
		return nil
	}
	return pressureOf(io.PSI)
}

func swapFrom(bytes *uint64) *statsapi.SwapStats {
	if bytes == nil {
		return nil
	}
	return &statsapi.SwapStats{SwapUsageBytes: bytes}
}

func ioFrom(p *Pressure) *statsapi.IOStats {
	if p == nil {
		return nil
	}
	return &statsapi.IOStats{PSI: p.api()}
}

// VolumeStats are a volume's.
type VolumeStats struct {
	Name string `json:"name"`
	Disk
}

// Disk is what something uses of a filesystem.
type Disk struct {
	Bytes  *uint64 `json:"bytes,omitempty"`
	Inodes *uint64 `json:"inodes,omitempty"`
}

// configSource is the annotation that says where the kubelet has a pod from
// (pkg/kubelet/types, Kubernetes v1.37.2).
const (
	configSource  = "kubernetes.io/config.source"
	fromAPIServer = "api"
)

// counted are the resources that a step asks containers for.
var counted = []v1.ResourceName{v1.ResourceMemory, v1.ResourceEphemeralStorage}

// podOf writes a pod; stats may be nil.
func podOf(pod *v1.Pod, stats *statsapi.PodStats, clock frame) Pod {
	written := Pod{
		PodRef: refTo(pod), Priority: pod.Spec.Priority, GraceSeconds: pod.Spec.TerminationGracePeriodSeconds,
		RestartPolicy: pod.Spec.RestartPolicy, Phase: pod.Status.Phase, Statuses: len(pod.Status.ContainerStatuses),
		Overhead: quantitiesOf(pod.Spec.Overhead, counted),
	}
	if source, given := pod.Annotations[configSource]; given && source != fromAPIServer {
		written.Source = source
		if source == "" {
			written.Source = "unknown" // as critical as any other
		}
	}
	_, written.Mirror = pod.Annotations[v1.MirrorPodAnnotationKey]
	if owner := metav1.GetControllerOf(pod); owner != nil {
		written.Owner = owner.Kind + "/" + owner.Name
	}
	for i := range pod.Spec.Containers {
		written.Containers = append(written.Containers, containerOf(&pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.InitContainers {
		written.InitContainers = append(written.InitContainers, containerOf(&pod.Spec.InitContainers[i]))
	}
	for i := range pod.Spec.Volumes {
		if volume, local := volumeOf(&pod.Spec.Volumes[i]); local {
			written.Volumes = append(written.Volumes, volume)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil {
			if written.Ended == nil {
				written.Ended = map[string]int32{}
			}
			written.Ended[pod.Status.ContainerStatuses[i].Name] = ended.ExitCode
		}
	}
	if own := pod.Spec.Resources; own != nil {
		written.Requests, written.Limits = quantitiesOf(own.Requests, nil), quantitiesOf(own.Limits, nil)
	}
	if stats != nil {
		s := statsOf(stats, clock)
		written.Stats = &s
	}
	return written
}

func containerOf(c *v1.Container) Container {
	return Container{
		Name: c.Name, Requests: quantitiesOf(c.Resources.Requests, counted), Limits: quantitiesOf(c.Resources.Limits, counted),
		Sidecar: c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways,
	}
}

// quantitiesOf writes the quantities of some resources; of all if none are named.
func quantitiesOf(list v1.ResourceList, names []v1.ResourceName) map[v1.ResourceName]string {
	var written map[v1.ResourceName]string
	write := func(name v1.ResourceName, quantity resource.Quantity) {
		if written == nil {
			written = map[v1.ResourceName]string{}
		}
		written[name] = quantity.String()
	}
	if names == nil {
		for name, quantity := range list {
			write(name, quantity)
		}
	}
	for _, name := range names {
		if quantity, given := list[name]; given {
			write(name, quantity)
		}
	}
	return written
}

func volumeOf(volume *v1.Volume) (Volume, bool) {
	written := Volume{Name: volume.Name}
	switch {
	case volume.EmptyDir != nil:
		written.Kind, written.Medium = "emptyDir", volume.EmptyDir.Medium
		if limit := volume.EmptyDir.SizeLimit; limit != nil {
			written.Limit = textOf(limit)
		}
	case volume.HostPath != nil:
		written.Kind = "hostPath"
	case volume.GitRepo != nil:
		written.Kind = "gitRepo"
	case volume.ConfigMap != nil:
		written.Kind = "configMap"
	default:
		return Volume{}, false
	}
	return written, true
}

func statsOf(stats *statsapi.PodStats, clock frame) Stats {
	written := Stats{Ephemeral: diskOf(stats.EphemeralStorage), Swap: swapOf(stats.Swap), IOStall: ioOf(stats.IO)}
	if stats.Memory != nil {
		written.MemoryStall = pressureOf(stats.Memory.PSI)
		written.Memory = stats.Memory.WorkingSetBytes
		if written.Age = clock.age(stats.Memory.Time.Time); written.Age == nil && written.Memory == nil {
			written.Age = SecondsOf(0) // there are stats of it, though they say nothing
		}
	}
	if stats.ProcessStats != nil {
		written.Processes = stats.ProcessStats.ProcessCount
	}
	for i := range stats.Containers {
		c := ContainerStats{Name: stats.Containers[i].Name, Rootfs: diskOf(stats.Containers[i].Rootfs), Logs: diskOf(stats.Containers[i].Logs), Swap: swapOf(stats.Containers[i].Swap), IOStall: ioOf(stats.Containers[i].IO)}
		if memory := stats.Containers[i].Memory; memory != nil {
			c.MemoryStall = pressureOf(memory.PSI)
			c.Memory = memory.WorkingSetBytes
		}
		written.Containers = append(written.Containers, c)
	}
	for i := range stats.VolumeStats {
		written.Volumes = append(written.Volumes, VolumeStats{Name: stats.VolumeStats[i].Name, Disk: *diskOf(&stats.VolumeStats[i].FsStats)})
	}
	return written
}

func diskOf(fs *statsapi.FsStats) *Disk {
	if fs == nil {
		return nil
	}
	return &Disk{Bytes: fs.UsedBytes, Inodes: fs.InodesUsed}
}

// API reads what podOf wrote.
func (p *Pod) API() (*v1.Pod, error) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Annotations: map[string]string{}},
		Spec:       v1.PodSpec{Priority: p.Priority, TerminationGracePeriodSeconds: p.GraceSeconds, RestartPolicy: p.RestartPolicy},
		Status:     v1.PodStatus{Phase: p.Phase},
	}
	if p.Source != "" {
		pod.Annotations[configSource] = p.Source
	}
	if p.Mirror {
		pod.Annotations[v1.MirrorPodAnnotationKey] = ""
	}
	var err error
	if pod.Spec.Containers, err = containersFrom(p.Containers); err != nil {
		return nil, fmt.Errorf("pod %s: %w", p, err)
	}
	if pod.Spec.InitContainers, err = containersFrom(p.InitContainers); err != nil {
		return nil, fmt.Errorf("pod %s: %w", p, err)
	}
	for _, volume := range p.Volumes {
		read, err := volume.api()
		if err != nil {
			return nil, fmt.Errorf("pod %s: volume %s: %w", p, volume.Name, err)
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, read)
	}
	for name, code := range p.Ended {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: name, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}},
		})
	}
	for len(pod.Status.ContainerStatuses) < min(p.Statuses, len(p.Containers)+len(p.Ended)) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{})
	}
	if pod.Spec.Overhead, err = listFrom(p.Overhead); err != nil {
		return nil, fmt.Errorf("pod %s: overhead: %w", p, err)
	}
	if p.Requests != nil || p.Limits != nil {
		pod.Spec.Resources = &v1.ResourceRequirements{}
		if pod.Spec.Resources.Requests, err = listFrom(p.Requests); err != nil {
			return nil, fmt.Errorf("pod %s: requests: %w", p, err)
		}
		if pod.Spec.Resources.Limits, err = listFrom(p.Limits); err != nil {
			return nil, fmt.Errorf("pod %s: limits: %w", p, err)
		}
	}
	return pod, nil
}

func containersFrom(written []Container) ([]v1.Container, error) {
	var containers []v1.Container
	for _, c := range written {
		container := v1.Container{Name: c.Name}
		var err error
		if container.Resources.Requests, err = listFrom(c.Requests); err != nil {
			return nil, fmt.Errorf("container %s: requests: %w", c.Name, err)
		}
		if container.Resources.Limits, err = listFrom(c.Limits); err != nil {
			return nil, fmt.Errorf("container %s: limits: %w", c.Name, err)
		}
		if c.Sidecar {
			always := v1.ContainerRestartPolicyAlways
			container.RestartPolicy = &always
		}
		containers = append(containers, container)
	}
	return containers, nil
}

func listFrom(written map[v1.ResourceName]string) (v1.ResourceList, error) {
	if written == nil {
		return nil, nil
	}
	list := v1.ResourceList{}
	for name, text := range written {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, text, err)
		}
		list[name] = quantity
	}
	return list, nil
}

func (v Volume) api() (v1.Volume, error) {
	volume := v1.Volume{Name: v.Name}
	switch v.Kind {
	case "emptyDir":
		volume.EmptyDir = &v1.EmptyDirVolumeSource{Medium: v.Medium}
		if v.Limit != "" {
			limit, err := resource.ParseQuantity(v.Limit)
			if err != nil {
				return v1.Volume{}, fmt.Errorf("limit %q: %w", v.Limit, err)
			}
			volume.EmptyDir.SizeLimit = &limit
		}
	case "hostPath":
		volume.HostPath = &v1.HostPathVolumeSource{}
	case "gitRepo":
		volume.GitRepo = &v1.GitRepoVolumeSource{}
	case "configMap":
		volume.ConfigMap = &v1.ConfigMapVolumeSource{}
	}
	return volume, nil
}

// api reads what statsOf wrote, into the place of a pod's stats in a summary.
func (s *Stats) api(pod PodRef, clock frame) statsapi.PodStats {
	stats := statsapi.PodStats{
		PodRef:           statsapi.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)},
		EphemeralStorage: s.Ephemeral.api(), Swap: swapFrom(s.Swap), IO: ioFrom(s.IOStall),
	}
	if s.Memory != nil || s.Age != nil {
		stats.Memory = &statsapi.MemoryStats{WorkingSetBytes: s.Memory, Time: metav1.NewTime(clock.time(s.Age)), PSI: s.MemoryStall.api()}
	}
	if s.Processes != nil {
		stats.ProcessStats = &statsapi.ProcessStats{ProcessCount: s.Processes}
	}
	for _, c := range s.Containers {
		container := statsapi.ContainerStats{Name: c.Name, Rootfs: c.Rootfs.api(), Logs: c.Logs.api(), Swap: swapFrom(c.Swap), IO: ioFrom(c.IOStall)}
		if c.Memory != nil || c.MemoryStall != nil {
			container.Memory = &statsapi.MemoryStats{WorkingSetBytes: c.Memory, PSI: c.MemoryStall.api()}
		}
		stats.Containers = append(stats.Containers, container)
	}
	for _, v := range s.Volumes {
		stats.VolumeStats = append(stats.VolumeStats, statsapi.VolumeStats{Name: v.Name, FsStats: *v.Disk.api()})
	}
	return stats
}

func (d *Disk) api() *statsapi.FsStats {
	if d == nil {
		return nil
	}
	return &statsapi.FsStats{UsedBytes: d.Bytes, InodesUsed: d.Inodes}
}
