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

package observe

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// MemorySource says where a summary keeps the node's memory.
type MemorySource struct {
	// SystemContainer is the name of the system container whose memory is the
	// node's; empty means the node's own entry.
	SystemContainer string
	// UsedIsUsage means that what is used is the usage and not the working set.
	UsedIsUsage bool
}

// Reader makes Snapshots out of the same memory again and again: most of what an
// idle pass would allocate is the index of the pods. The zero value is ready.
type Reader struct {
	pods map[string]*statsapi.PodStats
}

// FromSummary makes a Snapshot of a summary. Every field of a summary is
// optional: a signal of which a number is missing has no observation, and
// where two pods carry one UID the later counts. A nil summary is an empty one.
func FromSummary(summary *statsapi.Summary, memory MemorySource) Snapshot {
	return new(Reader).FromSummary(summary, memory)
}

// FromSummary is the function of that name; the Snapshot is good until the next
// call.
func (r *Reader) FromSummary(summary *statsapi.Summary, memory MemorySource) Snapshot {
	if summary == nil {
		return Snapshot{}
	}
	if r.pods == nil {
		r.pods = make(map[string]*statsapi.PodStats, len(summary.Pods))
	}
	clear(r.pods)
	s := Snapshot{Observations: make(Observations, len(signals)), pods: r.pods}
	for i := range summary.Pods {
		s.pods[summary.Pods[i].PodRef.UID] = &summary.Pods[i]
	}

	node := &summary.Node
	nodeMemory := node.Memory
	if memory.SystemContainer != "" {
		nodeMemory = SystemMemory(summary, memory.SystemContainer)
	}
	s.observeMemory(evictionapi.SignalMemoryAvailable, nodeMemory, memory.UsedIsUsage)
	s.observeMemory(evictionapi.SignalAllocatableMemoryAvailable, SystemMemory(summary, statsapi.SystemContainerPods), false)

	s.observeFs(evictionapi.SignalNodeFsAvailable, evictionapi.SignalNodeFsInodesFree, node.Fs)
	if runtime := node.Runtime; runtime != nil {
		s.observeFs(evictionapi.SignalImageFsAvailable, evictionapi.SignalImageFsInodesFree, runtime.ImageFs)
		s.observeFs(evictionapi.SignalContainerFsAvailable, evictionapi.SignalContainerFsInodesFree, runtime.ContainerFs)
	}
	s.observeStalls(node)
	s.observeSwap(node.Swap)
	if limit := node.Rlimit; limit != nil && limit.MaxPID != nil && limit.NumOfRunningProcesses != nil {
		s.Observations[evictionapi.SignalPIDAvailable] = Observation{
			Available: *limit.MaxPID - *limit.NumOfRunningProcesses,
			Capacity:  *limit.MaxPID,
			Time:      limit.Time.Time,
		}
	}
	return s
}

// SystemMemory returns the memory of the first system container of that name;
// nil when there is none.
func SystemMemory(summary *statsapi.Summary, name string) *statsapi.MemoryStats {
	for i := range summary.Node.SystemContainers {
		if container := &summary.Node.SystemContainers[i]; container.Name == name {
			return container.Memory
		}
	}
	return nil
}

func (s *Snapshot) observeMemory(signal evictionapi.Signal, memory *statsapi.MemoryStats, usedIsUsage bool) {
	if memory == nil {
		return
	}
	used := memory.WorkingSetBytes
	if usedIsUsage {
		used = memory.UsageBytes
	}
	if memory.AvailableBytes == nil || used == nil {
		return
	}
	s.observe(signal, *memory.AvailableBytes, *memory.AvailableBytes+*used, memory.Time)
}

func (s *Snapshot) observeFs(bytes, inodes evictionapi.Signal, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	if fs.AvailableBytes != nil && fs.CapacityBytes != nil {
		s.observe(bytes, *fs.AvailableBytes, *fs.CapacityBytes, fs.Time)
	}
	if fs.InodesFree != nil && fs.Inodes != nil {
		s.observe(inodes, *fs.InodesFree, *fs.Inodes, fs.Time)
	}
}

func (s *Snapshot) observe(signal evictionapi.Signal, available, capacity uint64, at metav1.Time) {
	s.Observations[signal] = Observation{Available: int64(available), Capacity: int64(capacity), Time: at.Time}
}

// Newer says whether the observation carries news after one taken at last:
// always when it does not say when it was taken.
func (o Observation) Newer(last time.Time) bool {
	return o.Time.IsZero() || o.Time.After(last)
}
