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
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Policy is everything a step depends on that does not change from pass to
// pass: the configuration, the layout of the disks, and the answers of the
// feature gates. It must not change while a step runs.
type Policy struct {
	// Thresholds that are watched.
	Thresholds []evictionapi.Threshold
	// Layout of the node's filesystems.
	Layout observe.Layout
	// PressureTransitionPeriod is how long a condition stays after it was last raised.
	PressureTransitionPeriod time.Duration
	// MaxPodGracePeriodSeconds bounds the grace of a pod evicted for a soft threshold.
	MaxPodGracePeriodSeconds int64
	// LocalStorageLimits: pods that exceed their own limits of local storage are evicted.
	LocalStorageLimits bool
	// PodLevelResources is the answer of upstream's gate of that name.
	PodLevelResources bool
	// KernelLimitsMemoryVolumes is the answer of upstream's gate
	// InPlacePodVerticalScalingMemoryBackedVolumes: the kernel holds emptyDir
	// volumes on tmpfs to their size, and they are no business of ours.
	KernelLimitsMemoryVolumes bool
	// IgnoresSidecarLimits: the kubelet holds no sidecar to a limit of its own, as
	// before 1.37. With Evidence it does all the same.
	IgnoresSidecarLimits bool

	// ConcurrentKills, Evidence and TargetedReclaim are the answers of this
	// project's gates EvictionConcurrentKills, EvictionEvidence and
	// EvictionTargetedReclaim.
	ConcurrentKills, Evidence, TargetedReclaim bool
	// ReclaimableMemory is that of EvictionReclaimableMemory: what the kernel can make
	// available counts as available while nobody waits for memory.
	ReclaimableMemory bool
}

// State is what a step remembers for the next. The zero value is that of a
// kubelet which has just started. A step returns a new State and leaves the old
// one as it was.
type State struct {
	// Standings of the thresholds that were met.
	Standings threshold.Standings
	// RaisedAt holds when each node condition was last raised.
	RaisedAt threshold.RaisedAt
	// Conditions that the node has now.
	Conditions []v1.NodeConditionType
	// ObservedAt holds the time of each observation of the last pass.
	ObservedAt map[evictionapi.Signal]time.Time
	// Ledger of the victims in flight (ConcurrentKills).
	Ledger Ledger
	// Reclaims under way or done for the present shortage of each filesystem
	// (ConcurrentKills).
	Reclaims Reclaims
	// Remembered stats of pods (Evidence).
	Remembered observe.Memory
}
