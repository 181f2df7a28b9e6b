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

package decide

import (
	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

// Decision is everything a pass has to do, in the order of the fields.
type Decision struct {
	// OverLimit pods exceed a limit of their own; each is evicted. If there are
	// any, the node's signals wait for the next pass.
	OverLimit []Eviction
	// CriticalOverLimit pods exceed one too, and are left alone.
	CriticalOverLimit []*v1.Pod
	// Shortage is the one that is acted upon; nil when no resource is starved, and
	// with ConcurrentKills, which acts upon all of them.
	Shortage *Shortage

	// Seen is what the step went by: without what could not be true (Evidence), and
	// with what can be reclaimed (ReclaimableMemory).
	Seen observe.Observations
	// Unknown are the signals whose numbers could not be true (Evidence).
	Unknown []evictionapi.Signal
	// Shortages are all that are acted upon, the most urgent first
	// (ConcurrentKills).
	Shortages []Shortage
	// Kills are to be started beside the loop: of the new victims, and again of
	// old ones whose grace is cut or whose kill failed (ConcurrentKills).
	Kills []Kill
	// Uncounted are evictions whose kill never reported success and whose pods are
	// gone all the same (ConcurrentKills).
	Uncounted []Eviction
	// Reclaims are to be started beside the loop (ConcurrentKills).
	Reclaims []ReclaimOrder
}

// Kill is a pod to kill beside the loop.
type Kill struct {
	Eviction Eviction
	// Again: the pod has been told before.
	Again Again
}

// Again says why a pod in flight is killed once more.
type Again uint8

// The reasons.
const (
	NotAgain Again = iota
	// Hastened: a hard threshold is met while the pod uses the grace of a soft one.
	Hastened
	// Retried: the kill failed, or the pod still runs after it.
	Retried
)

func (a Again) String() string {
	return [...]string{NotAgain: "first", Hastened: "hastened", Retried: "retried"}[a]
}

// Shortage is a starved resource and what to do about it.
type Shortage struct {
	// Threshold that is met, past its grace period and freshly observed.
	Threshold evictionapi.Threshold
	// Resource that runs short.
	Resource v1.ResourceName
	// Starved holds every threshold in the same position, this one first.
	Starved []evictionapi.Threshold
	// Reclaim lists what to free before any pod goes; then, if any threshold is
	// still short of its goal, the victim goes.
	Reclaim []ReclaimStep
	// Ranked says that the resource has an order of candidates; false while the
	// disks are laid out in a way that upstream does not support.
	Ranked bool
	// Candidates in the order of eviction, with the keys that ordered them.
	Candidates []Candidate
	// Spared are the critical pods that stand before the victim.
	Spared []*v1.Pod
	// Victim is the pod to evict; nil when there is none.
	Victim *Eviction
	// Victims are the pods to evict with ConcurrentKills, and Gains what the end of
	// each is expected to return.
	Victims []Eviction
	Gains   []Gains
	// Wanted is what is missing to the goal, and Pending what victims in flight
	// will return, in the signal's unit.
	Wanted, Pending int64
	// Outside: evicting pods is no remedy, since others hold what is used; Held is
	// what the pods hold, and Used what is used (Evidence).
	Outside    bool
	Held, Used int64
}

// Candidate is a pod that may be evicted, with its place in the order.
type Candidate struct {
	rank.Candidate
	// Gain is what its end would return of the starved signal; it is known with
	// Evidence or ConcurrentKills alone.
	Gain observe.Use
}

// Eviction is a pod to evict, and what to tell the world about it.
type Eviction struct {
	Pod *v1.Pod
	// GracePeriodSeconds replaces the pod's own.
	GracePeriodSeconds int64
	// Cause is the signal or the limit, as kubelet_evictions labels it.
	Cause string
	// Message goes into the pod's status, event and condition.
	Message string
	// Annotations of the pod's event.
	Annotations map[string]string
	// Disruption says that the pod's status carries the condition
	// DisruptionTarget: the node took the pod for its own sake.
	Disruption bool
}

// ReclaimStep is one way to free a resource without touching pods.
type ReclaimStep uint8

// The steps.
const (
	// DeadContainers deletes every container that is not running.
	DeadContainers ReclaimStep = iota
	// UnusedImages deletes every image that no container uses.
	UnusedImages
)

func (s ReclaimStep) String() string {
	return [...]string{DeadContainers: "dead containers", UnusedImages: "unused images"}[s]
}

// remedy says what can be done about a signal that is short.
type remedy struct {
	reclaim []ReclaimStep
	// parts of a pod that lie on the filesystem concerned.
	parts observe.Parts
}

const everything = observe.WritableLayers | observe.Logs | observe.LocalVolumes

var (
	containersAndImages = []ReclaimStep{DeadContainers, UnusedImages}
	containersOnly      = []ReclaimStep{DeadContainers}
	imagesOnly          = []ReclaimStep{UnusedImages}
)

// remedies says, for each layout of the disks and each filesystem, what frees
// it and what of a pod lies on it (KEP-4191). What has no filesystem has
// nothing to reclaim.
var remedies = map[observe.Layout]map[observe.Filesystem]remedy{
	// One filesystem: everything is on it, and everything helps. A container
	// filesystem that is separate from that has no meaning, and is taken for it.
	{}: {
		observe.NodeFs:      {containersAndImages, everything},
		observe.ImageFs:     {containersAndImages, everything},
		observe.ContainerFs: {containersAndImages, everything},
	},
	{SeparateContainerFs: true}: {
		observe.NodeFs:      {containersAndImages, everything},
		observe.ImageFs:     {containersAndImages, everything},
		observe.ContainerFs: {containersAndImages, everything},
	},
	// Images and writable layers share a filesystem of their own.
	{DedicatedImageFs: true}: {
		observe.NodeFs:      {nil, observe.Logs | observe.LocalVolumes},
		observe.ImageFs:     {containersAndImages, observe.WritableLayers},
		observe.ContainerFs: {containersAndImages, observe.WritableLayers},
	},
	// Images have a filesystem of their own, on which no pod holds anything;
	// writable layers are on nodefs.
	{DedicatedImageFs: true, SeparateContainerFs: true}: {
		observe.NodeFs:      {containersOnly, everything},
		observe.ImageFs:     {imagesOnly, 0},
		observe.ContainerFs: {containersOnly, everything},
	},
}
