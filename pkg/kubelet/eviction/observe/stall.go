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
	"strconv"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Stall is which average of a resource's pressure a signal is.
type Stall uint8

// The averages.
const (
	NoStall Stall = iota
	SomeAvg10
	SomeAvg60
	FullAvg10
	FullAvg60
)

// NoStallAtAll is the capacity of a signal of pressure: all of the time, in
// hundredths of a percent, as exact as the kernel writes it. What is available is
// the time that nobody stood still.
const NoStallAtAll = 100_00

// stalled returns an average in hundredths of a percent; unknown where there is none
// or it cannot be true.
func (s Stall) stalled(psi *statsapi.PSIStats) Use {
	// Where cadvisor read nothing, as on cgroup v1, the kubelet hands out zeros; that
	// nobody ever waited since the cgroup was made is not to be told from it.
	if psi == nil || *psi == (statsapi.PSIStats{}) {
		return Use{}
	}
	var percent float64
	switch s {
	case SomeAvg10:
		percent = psi.Some.Avg10
	case SomeAvg60:
		percent = psi.Some.Avg60
	case FullAvg10:
		percent = psi.Full.Avg10
	case FullAvg60:
		percent = psi.Full.Avg60
	default:
		return Use{}
	}
	if !(percent >= 0 && percent <= 100) {
		return Use{}
	}
	return Use{Amount: int64(math.Round(percent * NoStallAtAll / 100)), Known: true}
}

// StallObservation is the observation of a signal of pressure, by a percentage.
func StallObservation(percent float64) Observation {
	return Observation{Available: NoStallAtAll - int64(math.Round(percent*NoStallAtAll/100)), Capacity: NoStallAtAll}
}

// Percent writes a share of the time, in hundredths of a percent.
func Percent(share int64) string {
	return strconv.FormatFloat(float64(share)*100/NoStallAtAll, 'f', -1, 64) + "%"
}

// podStall is a pod's own share of a stall: of its cgroup, or else the most of its
// containers'.
func podStall(stats *statsapi.PodStats, resource v1.ResourceName, stall Stall) Use {
	of := func(memory *statsapi.MemoryStats, io *statsapi.IOStats) Use {
		switch {
		case resource == ResourceIO && io != nil:
			return stall.stalled(io.PSI)
		case resource == v1.ResourceMemory && memory != nil:
			return stall.stalled(memory.PSI)
		}
		return Use{}
	}
	use := of(stats.Memory, stats.IO)
	if use.Known {
		return use
	}
	for i := range stats.Containers {
		if one := of(stats.Containers[i].Memory, stats.Containers[i].IO); one.Known && (!use.Known || one.Amount > use.Amount) {
			use = one
		}
	}
	return use
}

// observeStalls takes the node's own pressure, where the kubelet has it (upstream's
// gate KubeletPSI).
func (s *Snapshot) observeStalls(node *statsapi.NodeStats) {
	for i := range signals {
		traits := &signals[i]
		if traits.Stall == NoStall {
			continue
		}
		var psi *statsapi.PSIStats
		o := Observation{Capacity: NoStallAtAll}
		switch {
		case traits.Resource == v1.ResourceMemory && node.Memory != nil:
			psi, o.Time = node.Memory.PSI, node.Memory.Time.Time
		case traits.Resource == ResourceIO && node.IO != nil:
			psi, o.Time = node.IO.PSI, node.IO.Time.Time
		}
		if use := traits.Stall.stalled(psi); use.Known {
			o.Available = NoStallAtAll - use.Amount
			s.Observations[traits.Signal] = o
		}
	}
}

// observeSwap takes the node's swap.
func (s *Snapshot) observeSwap(swap *statsapi.SwapStats) {
	if swap == nil || swap.SwapAvailableBytes == nil || swap.SwapUsageBytes == nil {
		return
	}
	if *swap.SwapAvailableBytes == 0 && *swap.SwapUsageBytes == 0 {
		return // the node has none: nothing can run short
	}
	s.observe(SignalSwapAvailable, *swap.SwapAvailableBytes, *swap.SwapAvailableBytes+*swap.SwapUsageBytes, swap.Time)
}

// swapUsed returns what a pod holds in swap: its own stats, or else the sum of its
// containers'.
func swapUsed(stats *statsapi.PodStats) Use {
	if stats.Swap != nil && stats.Swap.SwapUsageBytes != nil {
		return known(stats.Swap.SwapUsageBytes, 0)
	}
	var sum Use
	for i := range stats.Containers {
		if swap := stats.Containers[i].Swap; swap != nil {
			if use := known(swap.SwapUsageBytes, 0); use.Known {
				sum = Use{Amount: sum.Amount + min(use.Amount, math.MaxInt64-sum.Amount), Known: true}
			}
		}
	}
	return sum
}

// SwapUsed returns what a pod holds in swap, in bytes; nothing when unknown.
func SwapUsed(stats *statsapi.PodStats) Amount { return Units(swapUsed(stats).Amount) }
