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

// Package observe turns what the node says about itself into a Snapshot: one
// observation a signal, and what each pod uses. It holds values only; nothing
// in it reads a clock, a file or a feature gate.
package observe

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// Resources that have no name in the core API. Upstream's messages, events and
// annotations carry the same names (Kubernetes v1.37.2).
const (
	ResourceInodes v1.ResourceName = "inodes"
	ResourcePIDs   v1.ResourceName = "pids"
)

// Resources of EvictionPressureSignals.
const (
	ResourceSwap v1.ResourceName = "swap"
	ResourceIO   v1.ResourceName = "io"
)

// Signals of EvictionPressureSignals. Those of pressure are the share of time that
// tasks stood still for want of the resource, in percent: some of them, or all at
// once, as an average over 10 or 60 seconds (PSI, Documentation/accounting/psi.rst).
// CPU pressure is none: a CPU that everybody wants is well used, and no eviction
// follows from it.
const (
	SignalMemoryPressureSome10    evictionapi.Signal = "memory.pressure.some.avg10"
	SignalMemoryPressureSome60    evictionapi.Signal = "memory.pressure.some.avg60"
	SignalMemoryPressureFull10    evictionapi.Signal = "memory.pressure.full.avg10"
	SignalMemoryPressureFull60    evictionapi.Signal = "memory.pressure.full.avg60"
	SignalIOPressureSome10        evictionapi.Signal = "io.pressure.some.avg10"
	SignalIOPressureSome60        evictionapi.Signal = "io.pressure.some.avg60"
	SignalIOPressureFull10        evictionapi.Signal = "io.pressure.full.avg10"
	SignalIOPressureFull60        evictionapi.Signal = "io.pressure.full.avg60"
	SignalSwapAvailable           evictionapi.Signal = "swap.available"
	SignalAllocatablePIDAvailable evictionapi.Signal = "allocatablePid.available"
)

// OpGreaterThan is the operator of signals that are short when they are high.
const OpGreaterThan evictionapi.ThresholdOperator = "GreaterThan"

// Filesystem is one of the filesystems that signals watch; in a given layout
// several of them may be one and the same.
type Filesystem uint8

// The filesystems.
const (
	NoFilesystem Filesystem = iota
	NodeFs
	ImageFs
	ContainerFs
)

// Traits are what is fixed about a signal.
type Traits struct {
	// Signal is the name of the row.
	Signal evictionapi.Signal
	// Resource is what runs short when the signal is low.
	Resource v1.ResourceName
	// Condition is the node condition that a met threshold of the signal raises.
	Condition v1.NodeConditionType
	// Filesystem that the signal watches; NoFilesystem for memory and PIDs.
	Filesystem Filesystem
	// Format is how an available amount of the signal is written.
	Format resource.Format
	// Stall says which pressure the signal is; NoStall for amounts.
	Stall Stall
	// Extra: the signal needs EvictionPressureSignals.
	Extra bool
}

// Operator returns how the signal is compared with a threshold.
func (t Traits) Operator() evictionapi.ThresholdOperator {
	if t.Stall != NoStall {
		return OpGreaterThan
	}
	return evictionapi.OpLessThan
}

// signals holds every signal that a threshold can watch.
var signals = [...]Traits{
	{Signal: evictionapi.SignalMemoryAvailable, Resource: v1.ResourceMemory, Condition: v1.NodeMemoryPressure, Format: resource.BinarySI},
	{Signal: evictionapi.SignalAllocatableMemoryAvailable, Resource: v1.ResourceMemory, Condition: v1.NodeMemoryPressure, Format: resource.BinarySI},
	{Signal: evictionapi.SignalNodeFsAvailable, Resource: v1.ResourceEphemeralStorage, Condition: v1.NodeDiskPressure, Filesystem: NodeFs, Format: resource.BinarySI},
	{Signal: evictionapi.SignalNodeFsInodesFree, Resource: ResourceInodes, Condition: v1.NodeDiskPressure, Filesystem: NodeFs, Format: resource.DecimalSI},
	{Signal: evictionapi.SignalImageFsAvailable, Resource: v1.ResourceEphemeralStorage, Condition: v1.NodeDiskPressure, Filesystem: ImageFs, Format: resource.BinarySI},
	{Signal: evictionapi.SignalImageFsInodesFree, Resource: ResourceInodes, Condition: v1.NodeDiskPressure, Filesystem: ImageFs, Format: resource.DecimalSI},
	{Signal: evictionapi.SignalContainerFsAvailable, Resource: v1.ResourceEphemeralStorage, Condition: v1.NodeDiskPressure, Filesystem: ContainerFs, Format: resource.BinarySI},
	{Signal: evictionapi.SignalContainerFsInodesFree, Resource: ResourceInodes, Condition: v1.NodeDiskPressure, Filesystem: ContainerFs, Format: resource.DecimalSI},
	{Signal: evictionapi.SignalPIDAvailable, Resource: ResourcePIDs, Condition: v1.NodePIDPressure, Format: resource.DecimalSI},
	{Signal: SignalMemoryPressureFull10, Resource: v1.ResourceMemory, Condition: v1.NodeMemoryPressure, Format: resource.DecimalSI, Stall: FullAvg10, Extra: true},
	{Signal: SignalMemoryPressureFull60, Resource: v1.ResourceMemory, Condition: v1.NodeMemoryPressure, Format: resource.DecimalSI, Stall: FullAvg60, Extra: true},
	{Signal: SignalMemoryPressureSome10, Resource: v1.ResourceMemory, Condition: v1.NodeMemoryPressure, Format: resource.DecimalSI, Stall: SomeAvg10, Extra: true},
	{Signal: SignalMemoryPressureSome60, Resource: v1.ResourceMemory, Condition: v1.NodeMemoryPressure, Format: resource.DecimalSI, Stall: SomeAvg60, Extra: true},
	{Signal: SignalSwapAvailable, Resource: ResourceSwap, Condition: v1.NodeMemoryPressure, Format: resource.BinarySI, Extra: true},
	{Signal: SignalAllocatablePIDAvailable, Resource: ResourcePIDs, Condition: v1.NodePIDPressure, Format: resource.DecimalSI, Extra: true},
	{Signal: SignalIOPressureFull10, Resource: ResourceIO, Condition: v1.NodeDiskPressure, Format: resource.DecimalSI, Stall: FullAvg10, Extra: true},
	{Signal: SignalIOPressureFull60, Resource: ResourceIO, Condition: v1.NodeDiskPressure, Format: resource.DecimalSI, Stall: FullAvg60, Extra: true},
	{Signal: SignalIOPressureSome10, Resource: ResourceIO, Condition: v1.NodeDiskPressure, Format: resource.DecimalSI, Stall: SomeAvg10, Extra: true},
	{Signal: SignalIOPressureSome60, Resource: ResourceIO, Condition: v1.NodeDiskPressure, Format: resource.DecimalSI, Stall: SomeAvg60, Extra: true},
}

// place is the row of each signal in the table.
var place = func() map[evictionapi.Signal]int {
	rows := make(map[evictionapi.Signal]int, len(signals))
	for i, t := range signals {
		rows[t.Signal] = i
	}
	return rows
}()

// Signals returns every known signal in the order of the table.
func Signals() []evictionapi.Signal {
	names := make([]evictionapi.Signal, 0, len(signals))
	for _, t := range signals {
		names = append(names, t.Signal)
	}
	return names
}

// TraitsOf returns the row of a signal; false for a signal nobody knows.
func TraitsOf(signal evictionapi.Signal) (Traits, bool) {
	row, known := place[signal]
	if !known {
		return Traits{}, false
	}
	return signals[row], true
}
