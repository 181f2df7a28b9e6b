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

// Package decide is the pure step at the heart of a pass: given the policy,
// what was known before, and what is seen now, it says what to do. It touches
// nothing: no clock, no file, no lock, no log, no feature gate. The same
// arguments always give the same decision, so a step can be replayed, simulated
// and read as a specification.
//
// With all of this project's feature gates off a step decides what the manager
// of Kubernetes v1.37.2 decides. Where upstream takes the first of a map, and
// so takes any, a step takes the one that upstream takes most often.
package decide

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Step decides one pass at now over the active pods and a snapshot of the node.
// It returns the state to remember and what to do.
func Step(policy Policy, before State, pods []*v1.Pod, seen observe.Snapshot, now time.Time) (State, Decision) {
	var decision Decision
	var remembered observe.Memory
	if policy.Evidence {
		// A copy: whoever made the snapshot has it too.
		seen.Observations = maps.Clone(seen.Observations)
		decision.Unknown = seen.Observations.WithoutImplausible()
		remembered = before.Remembered.Remember(pods, seen, now)
		seen = seen.Recalling(remembered, before.Remembered, now)
	}
	if policy.ReclaimableMemory {
		seen.Observations = maps.Clone(seen.Observations)
		seen.Observations.CountReclaimable()
	}
	decision.Seen = seen.Observations
	after := State{
		Standings:  before.Standings.Advance(policy.Thresholds, seen.Observations, now, policy.Evidence),
		ObservedAt: make(map[evictionapi.Signal]time.Time, len(seen.Observations)),
		Ledger:     before.Ledger, Reclaims: before.Reclaims, Remembered: remembered,
	}
	if policy.Evidence {
		// When something is unknown for a while, the last good observation stands.
		maps.Copy(after.ObservedAt, before.ObservedAt)
	}
	for signal, observation := range seen.Observations {
		after.ObservedAt[signal] = observation.Time
	}
	after.RaisedAt = before.RaisedAt.With(threshold.Raised(after.Standings.Thresholds()), now)
	after.Conditions = after.RaisedAt.Within(policy.PressureTransitionPeriod, now)

	if policy.LocalStorageLimits {
		decision.OverLimit, decision.CriticalOverLimit = overLimit(policy, pods, seen)
		if len(decision.OverLimit) > 0 && !policy.ConcurrentKills {
			return after, decision
		}
	}
	var starved []evictionapi.Threshold
	for _, standing := range after.Standings {
		if standing.PastGrace && fresh(standing.Threshold.Signal, before, seen) {
			starved = append(starved, standing.Threshold)
		}
	}
	if policy.ConcurrentKills {
		relieve(policy, &after, &decision, starved, pods, seen, now)
	} else if len(starved) > 0 {
		decision.Shortage = shortageOf(policy, starved, pods, seen)
	}
	return after, decision
}

// Resolved says whether, after a reclaim, no threshold of any signal is short
// of its goal any more, so that no pod need go.
func Resolved(policy Policy, seen observe.Observations) bool {
	return !slices.ContainsFunc(policy.Thresholds, func(t evictionapi.Threshold) bool {
		observation, found := seen[t.Signal]
		return found && threshold.Unresolved(t, observation)
	})
}

// fresh says whether a signal was observed, and later than in the pass before:
// a threshold is acted upon once an observation.
func fresh(signal evictionapi.Signal, before State, seen observe.Snapshot) bool {
	observation, found := seen.Observations[signal]
	if !found {
		return false
	}
	last, observedBefore := before.ObservedAt[signal]
	return !observedBefore || observation.Newer(last)
}

// FirstByMemory says whether a threshold comes before those of all other
// signals: without memory a node does nothing else.
func FirstByMemory(t evictionapi.Threshold) bool {
	return t.Signal == evictionapi.SignalMemoryAvailable || t.Signal == evictionapi.SignalAllocatableMemoryAvailable
}

// byUrgency returns the thresholds on memory, the last one first, and then the
// others in their order. Upstream has them in a map, and its order among equals
// is any; this is the one that it has most often, since a small map is iterated
// in the order of insertion seven times of eight, and since its sort turns the
// order of memory thresholds round.
func byUrgency(starved []evictionapi.Threshold) []evictionapi.Threshold {
	ordered := make([]evictionapi.Threshold, 0, len(starved))
	for _, t := range slices.Backward(starved) {
		if FirstByMemory(t) {
			ordered = append(ordered, t)
		}
	}
	for _, t := range starved {
		if !FirstByMemory(t) {
			ordered = append(ordered, t)
		}
	}
	return ordered
}

// shortageOf says what to do about the most urgent of the starved thresholds.
func shortageOf(policy Policy, starved []evictionapi.Threshold, pods []*v1.Pod, seen observe.Snapshot) *Shortage {
	starved = byUrgency(starved)
	t := starved[0]
	traits, known := observe.TraitsOf(t.Signal)
	if !known {
		return nil
	}
	shortage := &Shortage{Threshold: t, Resource: traits.Resource, Starved: starved}
	if policy.Layout.Unsupported {
		return shortage
	}
	remedy := remedies[policy.Layout][traits.Filesystem]
	order := rank.Order{Resource: traits.Resource, Parts: remedy.parts}
	shortage.Ranked = true
	shortage.Reclaim = remedy.reclaim
	if policy.Evidence {
		chooseByEvidence(policy, shortage, traits, pods, seen)
		return shortage
	}
	ranked := order.Pods(pods, seen, policy.PodLevelResources)
	shortage.Candidates = make([]Candidate, len(ranked))
	for i, candidate := range ranked {
		shortage.Candidates[i].Candidate = candidate
	}
	for _, candidate := range ranked {
		if rank.Critical(candidate.Pod) {
			shortage.Spared = append(shortage.Spared, candidate.Pod)
			continue
		}
		shortage.Victim = eviction(policy, shortage, candidate.Pod, seen)
		break
	}
	return shortage
}

func eviction(policy Policy, shortage *Shortage, pod *v1.Pod, seen observe.Snapshot) *Eviction {
	message, annotations := Explain(shortage, pod, seen, policy.PodLevelResources)
	return &Eviction{
		Pod:                pod,
		GracePeriodSeconds: Grace(shortage.Threshold, policy.MaxPodGracePeriodSeconds, pod, policy.ConcurrentKills),
		Cause:              string(shortage.Threshold.Signal),
		Message:            message,
		Annotations:        annotations,
		Disruption:         true,
	}
}

// immediateGracePeriodSeconds is how long a pod has that must go at once: as
// upstream has it, the least that the runtime does not take for "kill without
// asking".
const immediateGracePeriodSeconds = 1

// Grace returns how many seconds a pod has to stop when it is evicted for the
// threshold: one for a hard threshold, for a soft one the maximum of the
// configuration (evictionMaxPodGracePeriod) or the pod's own period, whichever is
// less. A maximum of 0, the default, is what upstream's documentation makes of
// it: a cap, so that the pod goes at once. Where ownBounds, a negative maximum is
// none, and the pod's own period alone counts (#41347, #118172); upstream hands
// the negative number on, which the runtime takes for an immediate kill.
func Grace(t evictionapi.Threshold, maximum int64, pod *v1.Pod, ownBounds bool) int64 {
	hard := threshold.Hard(t)
	if !ownBounds {
		if own := pod.Spec.TerminationGracePeriodSeconds; !hard && own != nil {
			return min(maximum, *own)
		}
		if hard {
			return immediateGracePeriodSeconds
		}
		return maximum
	}
	own := int64(v1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		own = max(0, *pod.Spec.TerminationGracePeriodSeconds)
	}
	switch {
	case hard:
		return min(immediateGracePeriodSeconds, own)
	case maximum < 0:
		return own
	}
	return min(maximum, own)
}
