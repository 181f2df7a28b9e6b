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
// in the signal's unit.
func Quantity(t evictionapi.Threshold, capacity int64) *resource.Quantity {
	return evictionapi.GetThresholdQuantity(t.Value, observe.Quantity(t.Signal, capacity))
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
// with another operator than "less than" is never met.
func Met(t evictionapi.Threshold, seen observe.Observation) bool {
	return below(t, seen, Quantity)
}

// Unresolved says whether less is available than the goal.
func Unresolved(t evictionapi.Threshold, seen observe.Observation) bool {
	return below(t, seen, Goal)
}

func below(t evictionapi.Threshold, seen observe.Observation, limit func(evictionapi.Threshold, int64) *resource.Quantity) bool {
	return t.Operator == evictionapi.OpLessThan && limit(t, seen.Capacity).CmpInt64(seen.Available) > 0
}

// Standing is what is remembered of one threshold from pass to pass.
type Standing struct {
	// Since is the first of the unbroken line of passes that saw the threshold
	// met; zero when the last pass did not.
	Since time.Time
	// PastGrace: it has been met for its grace period at least. From then on it
	// stays met until its goal is reached.
	PastGrace bool
}

// IsMet says whether the threshold was met in the last pass, its grace period ignored.
func (s Standing) IsMet() bool {
	return !s.Since.IsZero()
}

// Next returns the standing after a pass at now that saw the threshold met or not.
func (s Standing) Next(met bool, grace time.Duration, now time.Time) Standing {
	if !met {
		return Standing{}
	}
	since := s.Since
	if since.IsZero() {
		since = now
	}
	return Standing{Since: since, PastGrace: now.Sub(since) >= grace}
}

// Advance returns the standing of each threshold after a pass at now. before
// holds those of the pass before, in the same order, and may be shorter.
func Advance(thresholds []evictionapi.Threshold, before []Standing, seen observe.Observations, now time.Time) []Standing {
	standings := make([]Standing, len(thresholds))
	copy(standings, before)
	met := make([]bool, len(thresholds))
	for i, t := range thresholds {
		if observation, found := seen[t.Signal]; found {
			met[i] = Met(t, observation)
		}
	}
	for i, t := range thresholds {
		observation, found := seen[t.Signal]
		if !met[i] && found && standings[i].PastGrace && Unresolved(t, observation) {
			met[i] = !hasSame(thresholds, met, t)
		}
	}
	for i, t := range thresholds {
		// Written twice, a threshold counts once: upstream keeps them in a map.
		once := met[i] && !slices.Contains(thresholds[:i], t)
		standings[i] = standings[i].Next(once, t.GracePeriod, now)
	}
	return standings
}

// hasSame says whether a met threshold equals t but for the minimum reclaim.
// Upstream remembers only one of such twins.
func hasSame(thresholds []evictionapi.Threshold, met []bool, t evictionapi.Threshold) bool {
	for i, other := range thresholds {
		if met[i] && Same(other, t) {
			return true
		}
	}
	return false
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
