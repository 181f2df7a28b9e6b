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
	"math"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// Plausible says whether the numbers can be true: there is some capacity, and no
// more is available than that, nor less than nothing. cadvisor and runtimes have
// said otherwise (#52386, #52336, #66961, #96732).
func (o Observation) Plausible() bool {
	return o.Capacity > 0 && o.Available >= 0 && o.Available <= o.Capacity
}

// WithoutImplausible removes the observations that cannot be true, and returns
// their signals in the order of the table.
func (o Observations) WithoutImplausible() (unknown []evictionapi.Signal) {
	for i := range signals {
		if observation, found := o[signals[i].Signal]; found && !observation.Plausible() {
			unknown = append(unknown, signals[i].Signal)
			delete(o, signals[i].Signal)
		}
	}
	return unknown
}

// Use is what a pod holds of a resource, in its unit; unknown where no number
// that could be true says so.
type Use struct {
	Amount int64
	Known  bool
}

func known(n *uint64, capacity int64) Use {
	if n == nil || *n > math.MaxInt64 || capacity > 0 && int64(*n) > capacity {
		return Use{}
	}
	return Use{Amount: int64(*n), Known: true}
}

// Held returns what a pod holds of a resource: of memory its working set, of
// process IDs its processes, of a filesystem what the parts say in bytes or
// inodes. More than the capacity cannot be true, and of memory and processes
// nothing cannot be either, as long as the pod runs (#110611). Parts that are
// missing count as nothing unless all of them are. stats may be nil.
//
// Of a signal of pressure it is the pod's own share of the stall: what it waited for
// itself is what its end makes good, at the most.
func Held(pod *v1.Pod, stats *statsapi.PodStats, traits Traits, parts Parts, capacity int64) Use {
	if stats == nil {
		return Use{}
	}
	if traits.Stall != NoStall {
		return podStall(stats, traits.Resource, traits.Stall)
	}
	resource := traits.Resource
	switch resource {
	case ResourceSwap:
		if use := swapUsed(stats); use.Known && (capacity <= 0 || use.Amount <= capacity) {
			return use
		}
		return Use{}
	case v1.ResourceMemory:
		if use := workingSetOf(stats); use.Known && (capacity <= 0 || use.Amount <= capacity) {
			return something(use)
		}
		return Use{}
	case ResourcePIDs:
		if stats.ProcessStats == nil {
			return Use{}
		}
		return something(known(stats.ProcessStats.ProcessCount, capacity))
	}
	return heldOnDisk(pod, stats, resource, parts, capacity)
}

func workingSetOf(stats *statsapi.PodStats) Use {
	if stats.Memory == nil {
		return Use{}
	}
	return known(stats.Memory.WorkingSetBytes, 0)
}

func something(use Use) Use {
	use.Known = use.Known && use.Amount > 0
	return use
}

func heldOnDisk(pod *v1.Pod, stats *statsapi.PodStats, resource v1.ResourceName, parts Parts, capacity int64) Use {
	var sum Use
	add := func(fs *statsapi.FsStats) {
		if fs == nil {
			return
		}
		n := fs.UsedBytes
		if resource == ResourceInodes {
			n = fs.InodesUsed
		}
		if use := known(n, capacity); use.Known {
			sum = Use{Amount: sum.Amount + min(use.Amount, math.MaxInt64-sum.Amount), Known: true}
		}
	}
	for i := range stats.Containers {
		if parts&WritableLayers != 0 {
			add(stats.Containers[i].Rootfs)
		}
		if parts&Logs != 0 {
			add(stats.Containers[i].Logs)
		}
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		counts := parts&LocalVolumes != 0 || parts&OwnVolumes != 0 && volume.HostPath == nil
		if counts && local(volume) {
			add(volumeStats(stats, volume.Name))
		}
	}
	return sum
}
