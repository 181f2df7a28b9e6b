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

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// Observation is a signal's available and capacity at a time, in the signal's
// own unit: bytes, inodes or processes. A number that the kernel or the
// summary let underflow shows as negative here, as it does upstream.
type Observation struct {
	Available int64
	Capacity  int64
	// Reclaimable is what the kernel could make available besides without taking it
	// from anybody: page cache and slab, less what it keeps for itself. It is 0 unless
	// EvictionReclaimableMemory asks for it.
	Reclaimable int64
	// Time is when the numbers were taken; zero where the source does not say.
	Time time.Time
}

// Observations holds what was observed. A signal that is missing was not
// observed: one of its numbers was absent.
type Observations map[evictionapi.Signal]Observation

// Quantity writes n in the format of the signal.
func Quantity(signal evictionapi.Signal, n int64) *resource.Quantity {
	traits, known := TraitsOf(signal)
	if !known {
		return resource.NewQuantity(n, resource.DecimalSI)
	}
	return resource.NewQuantity(n, traits.Format)
}

// Snapshot is one reading of the node: its signals, and its pods' stats.
// It must not change once made, nor the summary it was made from.
type Snapshot struct {
	Observations Observations
	pods         map[string]*statsapi.PodStats
	// recalled are stats from a while ago, of pods that may have none now.
	recalled Memory
	// earlier is what was remembered before.
	earlier Memory
	at      time.Time
}

// NewSnapshot makes a Snapshot of observations and pods' stats, as a record has them.
func NewSnapshot(observations Observations, pods []statsapi.PodStats) Snapshot {
	s := Snapshot{Observations: observations, pods: make(map[string]*statsapi.PodStats, len(pods))}
	for i := range pods {
		s.pods[pods[i].PodRef.UID] = &pods[i]
	}
	return s
}

// Remembered are a pod's stats and when they were last seen.
type Remembered struct {
	Stats *statsapi.PodStats
	At    time.Time
}

// Memory holds the last stats of each pod that said how much memory it holds.
type Memory map[types.UID]Remembered

// recent is how old stats may be and still say what a pod holds: longer than
// cadvisor and runtimes take between two readings, 10 to 60 s, and than a
// runtime takes to restart.
const recent = 2 * time.Minute

// Remember returns the memory after a snapshot at now, for the pods that are
// there: of each the present stats if they say something, else those from
// before while they are recent.
func (m Memory) Remember(pods []*v1.Pod, seen Snapshot, now time.Time) Memory {
	after := make(Memory, len(pods))
	for _, pod := range pods {
		if stats := seen.PodStats(pod.UID); stats != nil && something(workingSetOf(stats)).Known {
			after[pod.UID] = Remembered{Stats: stats, At: now}
		} else if old, found := m[pod.UID]; found && now.Sub(old.At) <= recent {
			after[pod.UID] = old
		}
	}
	return after
}

// Recalling returns the snapshot with what is remembered beside it, and what had been
// before that.
func (s Snapshot) Recalling(m, earlier Memory, now time.Time) Snapshot {
	s.recalled, s.earlier, s.at = m, earlier, now
	return s
}

// Growth returns by how much a pod's memory has grown since it was last seen, in
// bytes a second; 0 when it has not, or nobody knows.
func (s Snapshot) Growth(uid types.UID) int64 {
	before, found := s.earlier[uid]
	now := s.PodStats(uid)
	elapsed := s.at.Sub(before.At).Seconds()
	if !found || now == nil || elapsed <= 0 {
		return 0
	}
	held, heldBefore := workingSetOf(now), workingSetOf(before.Stats)
	if !held.Known || !heldBefore.Known {
		return 0
	}
	return max(0, int64(float64(held.Amount-heldBefore.Amount)/elapsed))
}

// Recalled returns the last stats of a pod that said something; nil when there
// are none that are recent.
func (s Snapshot) Recalled(uid types.UID) *statsapi.PodStats {
	return s.recalled[uid].Stats
}

// PodStats returns what was read of a pod; nil when nothing was.
func (s Snapshot) PodStats(uid types.UID) *statsapi.PodStats {
	return s.pods[string(uid)]
}

// SetWorkingSet puts a pod's memory at a time, in bytes, in the place of what the
// summary says of it. The summary is not changed; the Snapshot is, so this is for
// whoever makes it, before anybody else has it.
func (s Snapshot) SetWorkingSet(uid types.UID, bytes uint64, at time.Time) {
	stats, memory := statsapi.PodStats{}, statsapi.MemoryStats{}
	if known := s.pods[string(uid)]; known != nil {
		stats = *known
		if known.Memory != nil {
			memory = *known.Memory
		}
	}
	memory.Time, memory.WorkingSetBytes = metav1.NewTime(at), &bytes
	stats.Memory = &memory
	s.pods[string(uid)] = &stats
}
