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
}

// signals holds every signal that a threshold can watch.
var signals = [...]Traits{
	{evictionapi.SignalMemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure, NoFilesystem, resource.BinarySI},
	{evictionapi.SignalAllocatableMemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure, NoFilesystem, resource.BinarySI},
	{evictionapi.SignalNodeFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure, NodeFs, resource.BinarySI},
	{evictionapi.SignalNodeFsInodesFree, ResourceInodes, v1.NodeDiskPressure, NodeFs, resource.DecimalSI},
	{evictionapi.SignalImageFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure, ImageFs, resource.BinarySI},
	{evictionapi.SignalImageFsInodesFree, ResourceInodes, v1.NodeDiskPressure, ImageFs, resource.DecimalSI},
	{evictionapi.SignalContainerFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure, ContainerFs, resource.BinarySI},
	{evictionapi.SignalContainerFsInodesFree, ResourceInodes, v1.NodeDiskPressure, ContainerFs, resource.DecimalSI},
	{evictionapi.SignalPIDAvailable, ResourcePIDs, v1.NodePIDPressure, NoFilesystem, resource.DecimalSI},
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
