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

package journal

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// State is what a step remembered, all times as ages at the time of the pass. What
// was remembered of pods stands with them.
type State struct {
	Thresholds []Standing                       `json:"thresholds,omitempty"`
	RaisedAt   map[v1.NodeConditionType]Seconds `json:"raisedAt,omitempty"`
	// ObservedAt has null for what does not say when it was observed.
	ObservedAt map[evictionapi.Signal]*Seconds `json:"observedAt,omitempty"`
	InFlight   []Entry                         `json:"inFlight,omitempty"`
	// Expected, Lowest and Risen are the ledger's.
	Expected map[evictionapi.Signal]int64 `json:"expected,omitempty"`
	Lowest   map[evictionapi.Signal]int64 `json:"lowest,omitempty"`
	Risen    map[evictionapi.Signal]int64 `json:"risen,omitempty"`
	Reclaims map[string]Reclaiming        `json:"reclaims,omitempty"`
}

// Standing is a threshold that is met, or was and has not reached its goal.
type Standing struct {
	// Index of the threshold in the configuration, or else the threshold, if it is
	// not watched any more.
	Index *int       `json:"index,omitempty"`
	Other *Threshold `json:"other,omitempty"`
	// Signal is that of the threshold, for people.
	Signal evictionapi.Signal `json:"signal"`
	// Since is how long it has been met.
	Since     Seconds `json:"since"`
	PastGrace bool    `json:"pastGrace"`
}

// Entry is a victim in flight.
type Entry struct {
	PodRef
	GraceSeconds int64                        `json:"graceSeconds"`
	Cause        string                       `json:"cause"`
	Message      string                       `json:"message"`
	Annotations  map[string]string            `json:"annotations,omitempty"`
	Disruption   bool                         `json:"disruption,omitempty"`
	Gains        map[evictionapi.Signal]int64 `json:"gains,omitempty"`
	Decided      Seconds                      `json:"decided"`
	Promised     Seconds                      `json:"promised"`
	Killed       *Seconds                     `json:"killed,omitempty"`
	CleanedUp    *Seconds                     `json:"cleanedUp,omitempty"`
	Attempts     int                          `json:"attempts"`
	Running      int                          `json:"running,omitempty"`
	// Retry is negative while it lies ahead.
	Retry   *Seconds `json:"retry,omitempty"`
	Counted bool     `json:"counted,omitempty"`
	// Awaited is negative while it lies ahead: until then a kubelet that has just
	// started does not take the pod for gone.
	Awaited  *Seconds                     `json:"awaited,omitempty"`
	Returned map[evictionapi.Signal]int64 `json:"returned,omitempty"`
}

// Reclaiming is how far the reclaim of a filesystem has come.
type Reclaiming struct {
	Next        int                `json:"next"`
	Running     bool               `json:"running,omitempty"`
	Awaiting    bool               `json:"awaiting,omitempty"`
	Started     *Seconds           `json:"started,omitempty"`
	Ended       *Seconds           `json:"ended,omitempty"`
	Signal      evictionapi.Signal `json:"signal,omitempty"`
	Before      int64              `json:"before"`
	Freed       int64              `json:"freed"`
	Claimed     int64              `json:"claimed,omitempty"`
	ClaimedFrom int64              `json:"claimedFrom,omitempty"`
	Pause       Seconds            `json:"pause,omitempty"`
}

// filesystemNames are how filesystems are written.
var filesystemNames = map[observe.Filesystem]string{
	observe.NoFilesystem: "none", observe.NodeFs: "nodefs", observe.ImageFs: "imagefs", observe.ContainerFs: "containerfs",
}

func filesystemNamed(name string) (observe.Filesystem, error) {
	for filesystem, known := range filesystemNames {
		if known == name {
			return filesystem, nil
		}
	}
	return observe.NoFilesystem, fmt.Errorf("no filesystem is called %q", name)
}

// indexOf finds a threshold among those of a policy, by identity, as a step does.
func indexOf(t evictionapi.Threshold, among []evictionapi.Threshold) *int {
	if i := slices.Index(among, t); i >= 0 {
		return &i
	}
	return nil
}

func standingsOf(standings threshold.Standings, policy decide.Policy, clock frame) []Standing {
	var written []Standing
	for _, standing := range standings {
		w := Standing{
			Index: indexOf(standing.Threshold, policy.Thresholds), Signal: standing.Threshold.Signal,
			Since: Seconds(clock.now.Sub(standing.Since)), PastGrace: standing.PastGrace,
		}
		if w.Index == nil {
			other := thresholdOf(standing.Threshold)
			w.Other = &other
		}
		written = append(written, w)
	}
	return written
}

// stateOf writes a state; nil for one in which nothing but the times of
// observations is remembered.
func stateOf(state decide.State, policy decide.Policy, clock frame) *State {
	written := State{
		Thresholds: standingsOf(state.Standings, policy, clock),
		Expected:   state.Ledger.Expected, Lowest: state.Ledger.Lowest, Risen: state.Ledger.Risen,
	}
	for condition, at := range state.RaisedAt {
		if written.RaisedAt == nil {
			written.RaisedAt = map[v1.NodeConditionType]Seconds{}
		}
		written.RaisedAt[condition] = Seconds(clock.now.Sub(at))
	}
	for signal, at := range state.ObservedAt {
		if written.ObservedAt == nil {
			written.ObservedAt = map[evictionapi.Signal]*Seconds{}
		}
		written.ObservedAt[signal] = clock.age(at)
	}
	for _, entry := range state.Ledger.Entries {
		written.InFlight = append(written.InFlight, Entry{
			PodRef: refTo(entry.Eviction.Pod), GraceSeconds: entry.Eviction.GracePeriodSeconds, Cause: entry.Eviction.Cause,
			Message: entry.Eviction.Message, Annotations: entry.Eviction.Annotations, Disruption: entry.Eviction.Disruption,
			Gains:   entry.Gains,
			Decided: Seconds(clock.now.Sub(entry.DecidedAt)), Promised: Seconds(clock.now.Sub(entry.PromisedAt)),
			Killed: clock.age(entry.KilledAt), CleanedUp: clock.age(entry.CleanedUpAt), Retry: clock.age(entry.RetryAt),
			Attempts: entry.Attempts, Running: entry.Running, Counted: entry.Counted,
			Awaited: clock.age(entry.AwaitedUntil), Returned: entry.Returned,
		})
	}
	for filesystem, one := range state.Reclaims {
		if written.Reclaims == nil {
			written.Reclaims = map[string]Reclaiming{}
		}
		written.Reclaims[filesystemNames[filesystem]] = Reclaiming{
			Next: one.Next, Running: one.Running, Awaiting: one.Awaiting, Started: clock.age(one.StartedAt), Ended: clock.age(one.EndedAt),
			Signal: one.Signal, Before: one.Before, Freed: one.Freed, Claimed: one.Claimed, ClaimedFrom: one.ClaimedFrom, Pause: Seconds(one.Pause),
		}
	}
	return &written
}

// decideState reads what stateOf wrote.
func (s *State) decideState(policy decide.Policy, clock frame) (decide.State, error) {
	var state decide.State
	if s == nil {
		return state, nil
	}
	for i, written := range s.Thresholds {
		t, err := written.Threshold(policy)
		if err != nil {
			return state, fmt.Errorf("state.thresholds[%d]: %w", i, err)
		}
		state.Standings = append(state.Standings, threshold.Standing{Threshold: t, Since: clock.time(&written.Since), PastGrace: written.PastGrace})
	}
	for condition, age := range s.RaisedAt {
		if state.RaisedAt == nil {
			state.RaisedAt = threshold.RaisedAt{}
		}
		state.RaisedAt[condition] = clock.time(&age)
	}
	for signal, age := range s.ObservedAt {
		if state.ObservedAt == nil {
			state.ObservedAt = map[evictionapi.Signal]time.Time{}
		}
		state.ObservedAt[signal] = clock.time(age)
	}
	for _, e := range s.InFlight {
		state.Ledger.Entries = append(state.Ledger.Entries, e.decideEntry(clock))
	}
	state.Ledger.Expected, state.Ledger.Lowest, state.Ledger.Risen = s.Expected, s.Lowest, s.Risen
	for name, one := range s.Reclaims {
		filesystem, err := filesystemNamed(name)
		if err != nil {
			return state, fmt.Errorf("state.reclaims: %w", err)
		}
		if state.Reclaims == nil {
			state.Reclaims = decide.Reclaims{}
		}
		state.Reclaims[filesystem] = decide.Reclaiming{
			Next: one.Next, Running: one.Running, Awaiting: one.Awaiting, StartedAt: clock.time(one.Started), EndedAt: clock.time(one.Ended),
			Signal: one.Signal, Before: one.Before, Freed: one.Freed, Claimed: one.Claimed, ClaimedFrom: one.ClaimedFrom, Pause: time.Duration(one.Pause),
		}
	}
	return state, nil
}

// Threshold returns the threshold that stands.
func (s *Standing) Threshold(policy decide.Policy) (evictionapi.Threshold, error) {
	switch {
	case s.Index != nil && *s.Index >= 0 && *s.Index < len(policy.Thresholds):
		return policy.Thresholds[*s.Index], nil
	case s.Index != nil:
		return evictionapi.Threshold{}, fmt.Errorf("there is no threshold %d, the configuration has %d", *s.Index, len(policy.Thresholds))
	case s.Other != nil:
		return s.Other.parse()
	}
	return evictionapi.Threshold{}, fmt.Errorf("neither an index nor a threshold is given")
}

func (e *Entry) decideEntry(clock frame) decide.Entry {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID}}
	return decide.Entry{
		Eviction: decide.Eviction{Pod: pod, GracePeriodSeconds: e.GraceSeconds, Cause: e.Cause, Message: e.Message, Annotations: e.Annotations, Disruption: e.Disruption},
		Gains:    e.Gains, DecidedAt: clock.time(&e.Decided), PromisedAt: clock.time(&e.Promised),
		KilledAt: clock.time(e.Killed), CleanedUpAt: clock.time(e.CleanedUp), RetryAt: clock.time(e.Retry),
		Attempts: e.Attempts, Running: e.Running, Counted: e.Counted,
		AwaitedUntil: clock.time(e.Awaited), Returned: e.Returned,
	}
}
