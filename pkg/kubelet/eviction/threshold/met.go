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

package threshold

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Quantity returns the amount below which the threshold is met, for a capacity
// in the signal's unit. Of a signal that is short when it is high, it is what must be
// left of the capacity: 80 of 100 for a pressure above 20 %.
func Quantity(t evictionapi.Threshold, capacity int64) *resource.Quantity {
	quantity := evictionapi.GetThresholdQuantity(t.Value, observe.Quantity(t.Signal, capacity))
	if t.Operator == observe.OpGreaterThan {
		left := observe.Quantity(t.Signal, capacity)
		left.Sub(*quantity)
		return left
	}
	return quantity
}

// Goal returns the amount at which a threshold that has been met counts as
// resolved: its quantity and the minimum reclaim.
func Goal(t evictionapi.Threshold, capacity int64) *resource.Quantity {
	goal := Quantity(t, capacity)
	if t.MinReclaim != nil {
		goal.Add(*evictionapi.GetThresholdQuantity(*t.MinReclaim, observe.Quantity(t.Signal, capacity)))
	}
	return goal
}

// Met says whether less is available than the threshold allows. A threshold
// with an operator that nobody knows is never met.
func Met(t evictionapi.Threshold, seen observe.Observation) bool {
	return below(t, seen, Quantity)
}

// Unresolved says whether less is available than the goal.
func Unresolved(t evictionapi.Threshold, seen observe.Observation) bool {
	return below(t, seen, Goal)
}

func below(t evictionapi.Threshold, seen observe.Observation, limit func(evictionapi.Threshold, int64) *resource.Quantity) bool {
	return Watched(t) && limit(t, seen.Capacity).CmpInt64(seen.Available) > 0
}

// Watched says whether the threshold can be met at all: its operator is known.
func Watched(t evictionapi.Threshold) bool {
	return t.Operator == evictionapi.OpLessThan || t.Operator == observe.OpGreaterThan
}

// Standing is what is remembered of a threshold that was met in a pass.
type Standing struct {
	Threshold evictionapi.Threshold
	// Since is the first of the unbroken line of passes that saw it met.
	Since time.Time
	// PastGrace: it has been met for its grace period at least. From then on it
	// stays met until its goal is reached.
	PastGrace bool
}

// Standings are those of the thresholds that were met in a pass; one that is not
// among them was not.
type Standings []Standing

// Advance returns the standings after a pass at now that saw the observations:
// those of the thresholds that are met, and of the ones past their grace period
// that have not reached their goal yet, even if they are watched no more. Where
// unknownStays, a threshold whose signal was not observed stands as it did:
// what is unknown changes nothing. Upstream forgets it.
func (s Standings) Advance(thresholds []evictionapi.Threshold, seen observe.Observations, now time.Time, unknownStays bool) Standings {
	var met []evictionapi.Threshold
	for _, t := range thresholds {
		// Written twice, a threshold counts once: upstream keeps them in a map.
		if observation, found := seen[t.Signal]; found && Met(t, observation) && !slices.Contains(met, t) {
			met = append(met, t)
		}
	}
	for _, standing := range s {
		t := standing.Threshold
		observation, found := seen[t.Signal]
		// Of twins that differ in their minimum reclaim upstream remembers one.
		twin := func(other evictionapi.Threshold) bool { return Same(other, t) }
		if !found && unknownStays && !slices.ContainsFunc(met, func(other evictionapi.Threshold) bool { return Same(other, t) }) {
			met = append(met, t)
			continue
		}
		if standing.PastGrace && found && Unresolved(t, observation) && !slices.ContainsFunc(met, twin) {
			met = append(met, t)
		}
	}
	after := make(Standings, 0, len(met))
	for _, t := range met {
		after = append(after, s.of(t).next(now))
	}
	return after
}

// of returns the standing of a threshold, a new one if it has none yet.
func (s Standings) of(t evictionapi.Threshold) Standing {
	for _, standing := range s {
		if standing.Threshold == t {
			return standing
		}
	}
	return Standing{Threshold: t}
}

// next returns the standing after a pass at now that saw the threshold met.
func (s Standing) next(now time.Time) Standing {
	if s.Since.IsZero() {
		s.Since = now
	}
	s.PastGrace = now.Sub(s.Since) >= s.Threshold.GracePeriod
	return s
}

// NextGrace returns how long after now the next grace period of a threshold that
// is met ends; false when none runs.
func (s Standings) NextGrace(now time.Time) (time.Duration, bool) {
	next, running := time.Duration(0), false
	for _, standing := range s {
		if left := standing.Since.Add(standing.Threshold.GracePeriod).Sub(now); !standing.PastGrace && (!running || left < next) {
			next, running = left, true
		}
	}
	return next, running
}

// Thresholds returns those that were met.
func (s Standings) Thresholds() []evictionapi.Threshold {
	met := make([]evictionapi.Threshold, 0, len(s))
	for _, standing := range s {
		met = append(met, standing.Threshold)
	}
	return met
}

// Same says whether two thresholds watch for the same thing; their minimum
// reclaim may differ.
func Same(a, b evictionapi.Threshold) bool {
	return a.Signal == b.Signal && a.Operator == b.Operator && a.GracePeriod == b.GracePeriod && SameValue(a.Value, b.Value)
}

// SameValue says whether two values are the same quantity or the same percentage.
func SameValue(a, b evictionapi.ThresholdValue) bool {
	if a.Quantity == nil || b.Quantity == nil {
		return a.Quantity == b.Quantity && a.Percentage == b.Percentage
	}
	return a.Quantity.Cmp(*b.Quantity) == 0
}
