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

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Node is what is known of the node that a configuration is for. The zero value is a
// node of which nothing is known.
type Node struct {
	// Capacity of the signals, in their units.
	Capacity map[evictionapi.Signal]int64
	// Layout of the filesystems; nil when it is not known.
	Layout *observe.Layout
	// Allocatable, as the node reports it; nil when it is not known.
	Allocatable v1.ResourceList
}

// capacityNames are the names of --node-capacity.
var capacityNames = map[string]evictionapi.Signal{
	"memory":         evictionapi.SignalMemoryAvailable,
	"nodefs":         evictionapi.SignalNodeFsAvailable,
	"nodefs.inodes":  evictionapi.SignalNodeFsInodesFree,
	"imagefs":        evictionapi.SignalImageFsAvailable,
	"imagefs.inodes": evictionapi.SignalImageFsInodesFree,
	"pid":            evictionapi.SignalPIDAvailable,
}

// CapacityNames lists what ParseCapacity knows.
func CapacityNames() string {
	return strings.Join(slices.Sorted(maps.Keys(capacityNames)), ", ")
}

// ParseCapacity parses capacities such as "memory=16Gi,nodefs=100Gi". With an imagefs
// that is a filesystem of its own; with nodefs alone images lie there.
func ParseCapacity(text string) (Node, error) {
	node := Node{Capacity: map[evictionapi.Signal]int64{}}
	for _, pair := range strings.Split(text, ",") {
		name, amount, found := strings.Cut(strings.TrimSpace(pair), "=")
		signal, known := capacityNames[name]
		if !found || !known {
			return Node{}, fmt.Errorf("node capacity %q: write NAME=AMOUNT; the names are %s", pair, CapacityNames())
		}
		if _, twice := node.Capacity[signal]; twice {
			return Node{}, fmt.Errorf("node capacity: %s is given twice", name)
		}
		value, err := threshold.ParseAmount(signal, amount)
		if err != nil {
			return Node{}, fmt.Errorf("node capacity: %s: %w", name, err)
		}
		if value == 0 {
			return Node{}, fmt.Errorf("node capacity: %s: %q: not above 0", name, amount)
		}
		node.Capacity[signal] = value
	}
	node.divide(true)
	return node, nil
}

// imageFs pairs each signal of imagefs with that of nodefs.
var imageFs = map[evictionapi.Signal]evictionapi.Signal{
	evictionapi.SignalImageFsAvailable:  evictionapi.SignalNodeFsAvailable,
	evictionapi.SignalImageFsInodesFree: evictionapi.SignalNodeFsInodesFree,
}

// divide finds out the layout by the capacities. Two filesystems of the very same
// size cannot be told from one, but who writes both down by hand means two.
func (n *Node) divide(byHand bool) {
	dedicated, disks := false, false
	for own, shared := range imageFs {
		image, imageKnown := n.Capacity[own]
		node, nodeKnown := n.Capacity[shared]
		disks = disks || imageKnown || nodeKnown
		dedicated = dedicated || imageKnown && (byHand || !nodeKnown || image != node)
	}
	if !disks {
		return
	}
	n.Layout = &observe.Layout{DedicatedImageFs: dedicated}
	for own, shared := range imageFs {
		if capacity, known := n.Capacity[shared]; known && !dedicated {
			n.Capacity[own] = capacity
		}
	}
}

// NodeOf takes what the API server says of a node, and the node's own summary, which
// may be nil: memory and nodefs from the former, the rest from the latter.
func NodeOf(node *v1.Node, summary *statsapi.Summary) Node {
	n := Node{Capacity: map[evictionapi.Signal]int64{}, Allocatable: node.Status.Allocatable}
	set := func(signal evictionapi.Signal, capacity int64) {
		if capacity > 0 {
			n.Capacity[signal] = capacity
		}
	}
	set(evictionapi.SignalMemoryAvailable, node.Status.Capacity.Memory().Value())
	set(evictionapi.SignalNodeFsAvailable, node.Status.Capacity.StorageEphemeral().Value())
	if summary == nil {
		return n
	}
	disk := func(stats *statsapi.FsStats, available, inodes evictionapi.Signal) {
		if stats == nil {
			return
		}
		if stats.CapacityBytes != nil {
			set(available, int64(*stats.CapacityBytes))
		}
		if stats.Inodes != nil {
			set(inodes, int64(*stats.Inodes))
		}
	}
	disk(summary.Node.Fs, evictionapi.SignalNodeFsAvailable, evictionapi.SignalNodeFsInodesFree)
	if runtime := summary.Node.Runtime; runtime != nil {
		disk(runtime.ImageFs, evictionapi.SignalImageFsAvailable, evictionapi.SignalImageFsInodesFree)
	}
	if rlimit := summary.Node.Rlimit; rlimit != nil && rlimit.MaxPID != nil {
		set(evictionapi.SignalPIDAvailable, *rlimit.MaxPID)
	}
	n.divide(false)
	return n
}
