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

// Package rank orders the pods that may be evicted. Each pod's keys are
// computed once, as plain numbers, and are part of the result, so that anybody
// can see what put one pod before another. It holds values only; nothing in it
// reads a clock, a file or a feature gate.
package rank

import (
	"cmp"
	"sort"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Order says by what pods are ordered when a resource runs short.
type Order struct {
	// Resource is what runs short.
	Resource v1.ResourceName
	// Parts are what counts as a pod's use of it, for a filesystem.
	Parts observe.Parts
	// OwnUnits: inodes are compared with inodes. Upstream deducts a request in
	// bytes from them.
	OwnUnits bool
	// Swap: what a pod holds in swap counts as its memory. Upstream leaves out what it
	// made the node swap.
	Swap bool
	// Traits of the signal that is short.
	Traits observe.Traits
}

// Group says how a pod's use stands against its request.
type Group uint8

const (
	// Unknown: there are no stats of the pod. Upstream evicts these first.
	Unknown Group = iota
	// AboveRequest: the pod uses more than it requests.
	AboveRequest
	// WithinRequest: it does not.
	WithinRequest
	// NotCompared: requests do not matter for the resource.
	NotCompared
)

// Keys are what a pod is ordered by, the most important first.
type Keys struct {
	// Group comes first: Unknown, AboveRequest, WithinRequest.
	Group Group
	// Priority comes second, the lowest first.
	Priority int32
	// NoStats pods come before others of the same priority.
	NoStats bool
	// Excess comes last, the largest first: usage above request, in bytes or
	// inodes.
	Excess observe.Amount
	// Processes comes instead of it for process IDs, the largest first.
	Processes uint64
	// Growth comes after all that for signals of pressure, the largest first: bytes of
	// memory a second.
	Growth int64
}

// Compare returns a negative number when a pod with keys k goes before one with
// keys other.
func (k Keys) Compare(other Keys) int {
	if by := cmp.Compare(k.Group, other.Group); by != 0 {
		return by
	}
	if by := cmp.Compare(k.Priority, other.Priority); by != 0 {
		return by
	}
	if k.NoStats != other.NoStats {
		if k.NoStats {
			return -1
		}
		return 1
	}
	if by := other.Excess.Cmp(k.Excess); by != 0 {
		return by
	}
	// Upstream subtracts one count from the other and takes the result for
	// signed. For numbers of processes that is a comparison; for numbers that
	// cannot be true it gives the same nonsense here as there.
	return cmp.Or(cmp.Compare(int64(other.Processes-k.Processes), 0), cmp.Compare(other.Growth, k.Growth))
}

// Candidate is a pod with its place in the order.
type Candidate struct {
	Pod  *v1.Pod
	Keys Keys
}

// KeysOf computes the keys of a pod; stats may be nil.
func (o Order) KeysOf(pod *v1.Pod, stats *statsapi.PodStats, podLevelResources bool) Keys {
	keys := Keys{NoStats: stats == nil}
	if pod.Spec.Priority != nil {
		keys.Priority = *pod.Spec.Priority
	}
	if o.Resource == observe.ResourcePIDs {
		keys.Group = NotCompared
		if stats != nil {
			keys.Processes = observe.Processes(stats.ProcessStats)
		}
		return keys
	}
	if stats == nil {
		return keys
	}
	if o.Traits.Extra {
		return o.extraKeys(keys, pod, stats, podLevelResources)
	}

	request := Request(pod, o.Resource, podLevelResources)
	deducted := request
	var used observe.Amount
	switch o.Resource {
	case v1.ResourceMemory:
		used = o.memory(stats)
	case observe.ResourceInodes:
		used = observe.DiskUsed(pod, stats, o.Parts).Of(o.Resource)
		// Upstream deducts the request in bytes from the number of inodes.
		if !o.OwnUnits {
			deducted = Request(pod, v1.ResourceEphemeralStorage, podLevelResources)
		}
	default:
		used = observe.DiskUsed(pod, stats, o.Parts).Of(o.Resource)
	}
	keys.Group = WithinRequest
	if used.Cmp(request) > 0 {
		keys.Group = AboveRequest
	}
	keys.Excess = used.Sub(deducted)
	return keys
}

// memory is what a pod uses of it.
func (o Order) memory(stats *statsapi.PodStats) observe.Amount {
	used := observe.WorkingSet(stats.Memory)
	if o.Swap {
		used = used.Add(observe.SwapUsed(stats))
	}
	return used
}

// extraKeys are those for the signals of EvictionPressureSignals: of memory and swap,
// pods above their memory request come first; then what counts is the pod's own share
// of the stall, or what it holds in swap.
func (o Order) extraKeys(keys Keys, pod *v1.Pod, stats *statsapi.PodStats, podLevelResources bool) Keys {
	keys.Group = NotCompared
	if o.Resource == v1.ResourceMemory || o.Resource == observe.ResourceSwap {
		keys.Group = WithinRequest
		if o.memory(stats).Cmp(Request(pod, v1.ResourceMemory, podLevelResources)) > 0 {
			keys.Group = AboveRequest
		}
	}
	keys.Excess = observe.Units(observe.Held(pod, stats, o.Traits, o.Parts, 0).Amount)
	return keys
}

// byKeys sorts with the standard library's sort.Sort and not with a stable
// sort: upstream does, and so equal pods end up in the same places as there.
type byKeys []Candidate

func (c byKeys) Len() int           { return len(c) }
func (c byKeys) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c byKeys) Less(i, j int) bool { return c[i].Keys.Compare(c[j].Keys) < 0 }

// Pods returns the pods in the order of eviction, with their keys.
func (o Order) Pods(pods []*v1.Pod, seen observe.Snapshot, podLevelResources bool) []Candidate {
	candidates := make([]Candidate, 0, len(pods))
	for _, pod := range pods {
		candidates = append(candidates, Candidate{Pod: pod, Keys: o.KeysOf(pod, seen.PodStats(pod.UID), podLevelResources)})
	}
	sort.Sort(byKeys(candidates))
	return candidates
}
