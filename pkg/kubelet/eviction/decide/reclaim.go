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
	"maps"
	"slices"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// ReclaimOrder asks for steps on a filesystem to be carried out beside the loop.
type ReclaimOrder struct {
	// Filesystem that the steps free, one for all that are the same.
	Filesystem observe.Filesystem
	Steps      []ReclaimStep
	// Signal that is short, and Wanted what is missing to its goal and the margin,
	// in its unit.
	Signal evictionapi.Signal
	Wanted int64
	// Available is what was available of it.
	Available int64
}

// margin is by how much a reclaim goes beyond the goal, one part of the capacity:
// enough that a log line does not take the node below its threshold again.
const margin = 1000

// Reclaiming is how far reclaim has come for the present shortage of a filesystem.
type Reclaiming struct {
	// Next is the step to take next; all have been taken when it is past the last.
	Next int
	// Running since StartedAt, or ended at EndedAt; Awaiting a sample taken since.
	Running, Awaiting  bool
	StartedAt, EndedAt time.Time
	// Signal by which it is judged, what was available of it before the first
	// step, and by how much more that has been since.
	Signal        evictionapi.Signal
	Before, Freed int64
	// Claimed is what the last step says that it freed, in bytes, beginning with
	// what was available then: the space of an image may be back a while later.
	Claimed, ClaimedFrom int64
	// Pause before the steps are taken anew; it doubles while they free nothing.
	Pause time.Duration
}

// Reclaims holds the filesystems' reclaims. It is a value.
type Reclaims map[observe.Filesystem]Reclaiming

// Bounds of a reclaim: how long a step may take before pods go without it, how
// long a sample is waited for that was taken after it, and the pause before
// steps that freed nothing are taken again (#71869, k3s#888).
const (
	reclaimPatience   = 2 * time.Minute
	samplePatience    = 15 * time.Second
	reclaimPauseFirst = 30 * time.Second
	reclaimPauseLast  = 10 * time.Minute
)

// the returns the filesystem that another is the same as, in a layout.
func the(layout observe.Layout, filesystem observe.Filesystem) observe.Filesystem {
	switch {
	case filesystem == observe.NoFilesystem:
		return observe.NoFilesystem
	case !layout.DedicatedImageFs:
		return observe.NodeFs
	case filesystem == observe.ContainerFs && layout.SeparateContainerFs:
		return observe.NodeFs
	case filesystem == observe.ContainerFs:
		return observe.ImageFs
	}
	return filesystem
}

// with returns the reclaims with one of them changed.
func (r Reclaims) with(filesystem observe.Filesystem, one Reclaiming) Reclaims {
	after := maps.Clone(r)
	if after == nil {
		after = Reclaims{}
	}
	after[filesystem] = one
	return after
}

// Ended notes that the steps on a filesystem have ended, and what they say that
// they freed, in bytes; 0 if they do not say.
func (r Reclaims) Ended(filesystem observe.Filesystem, claimed int64, at time.Time) Reclaims {
	one, found := r[filesystem]
	if !found {
		return r
	}
	one.Running, one.EndedAt, one.Claimed = false, at, claimed
	return r.with(filesystem, one)
}

// Awaiting says whether a sample is awaited that shows what steps freed.
func (r Reclaims) Awaiting() bool {
	for _, one := range r {
		if one.Awaiting {
			return true
		}
	}
	return false
}

// Advance follows what the steps freed. They are taken anew when the shortage was
// over in between, if they freed something, or after a pause if they did not.
func (r Reclaims) Advance(policy Policy, seen observe.Observations, now time.Time) Reclaims {
	for _, filesystem := range slices.Sorted(maps.Keys(r)) {
		one := r[filesystem]
		if one.Running {
			continue
		}
		if observation, found := seen[one.Signal]; found {
			one.Freed = max(one.Freed, observation.Available-one.Before)
		}
		over := !slices.ContainsFunc(policy.Thresholds, func(t evictionapi.Threshold) bool {
			traits, _ := observe.TraitsOf(t.Signal)
			observation, found := seen[t.Signal]
			return the(policy.Layout, traits.Filesystem) == filesystem && found && threshold.Unresolved(t, observation)
		})
		switch {
		case over && one.Freed > 0:
			r = maps.Clone(r)
			delete(r, filesystem)
			continue
		case one.Next > 0 && now.Sub(one.EndedAt) >= max(one.Pause, reclaimPauseFirst):
			one.Next = 0
			one.Pause = min(max(2*one.Pause, 2*reclaimPauseFirst), reclaimPauseLast)
		}
		r = r.with(filesystem, one)
	}
	return r
}

// reclaims orders the next steps for a shortage, if there are any to take, and
// says whether pods are to wait: for steps that run, or for a sample that shows
// what they freed.
func (r *relief) reclaims(shortage *Shortage, traits observe.Traits, observation observe.Observation) bool {
	steps := remedies[r.policy.Layout][traits.Filesystem].reclaim
	if len(steps) == 0 {
		return false
	}
	filesystem := the(r.policy.Layout, traits.Filesystem)
	one := r.state.Reclaims[filesystem]
	if one.Running {
		return r.now.Sub(one.StartedAt) < reclaimPatience
	}
	one.Awaiting = !one.EndedAt.IsZero() && !observation.Time.IsZero() && observation.Time.Before(one.EndedAt) && r.now.Sub(one.EndedAt) < samplePatience
	if _, known := r.state.Reclaims[filesystem]; known {
		r.state.Reclaims = r.state.Reclaims.with(filesystem, one)
	}
	if one.Awaiting {
		return true
	}
	if one.late(traits, observation, r.now) >= shortage.Wanted {
		return true
	}
	changed := slices.ContainsFunc(r.state.Ledger.Entries, func(e Entry) bool { return e.CleanedUpAt.After(one.EndedAt) })
	if one.Next >= len(steps) && changed {
		one.Next = 0 // a victim's containers are dead now
	}
	if one.Next >= len(steps) {
		return false
	}
	take := steps[one.Next:]
	if r.policy.TargetedReclaim {
		take = take[:1]
	}
	if one.Next == 0 {
		one.Before, one.Freed, one.Signal = observation.Available, 0, shortage.Threshold.Signal
	}
	one.Next, one.Running, one.StartedAt = one.Next+len(take), true, r.now
	one.Claimed, one.ClaimedFrom = 0, observation.Available
	r.state.Reclaims = r.state.Reclaims.with(filesystem, one)
	shortage.Reclaim = take
	r.decision.Reclaims = append(r.decision.Reclaims, ReclaimOrder{
		Filesystem: filesystem, Steps: take, Signal: shortage.Threshold.Signal,
		Wanted: shortage.Wanted + observation.Capacity/margin, Available: observation.Available,
	})
	return true
}

// late returns how much of what the last step claims to have freed has not been
// seen to come back, for as long as that may take.
func (r Reclaiming) late(traits observe.Traits, observation observe.Observation, now time.Time) int64 {
	if r.Claimed == 0 || traits.Resource == observe.ResourceInodes || now.Sub(r.EndedAt) > settleDisk {
		return 0
	}
	return max(0, r.Claimed-max(0, observation.Available-r.ClaimedFrom))
}

// OnFilesystemOf returns the thresholds on the same filesystem as a signal's.
func OnFilesystemOf(policy Policy, signal evictionapi.Signal) []evictionapi.Threshold {
	place := func(signal evictionapi.Signal) observe.Filesystem {
		traits, _ := observe.TraitsOf(signal)
		return the(policy.Layout, traits.Filesystem)
	}
	var own []evictionapi.Threshold
	for _, t := range policy.Thresholds {
		if place(t.Signal) == place(signal) {
			own = append(own, t)
		}
	}
	return own
}
