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

// Package explain finds out from a journal why a pod was evicted, what went before,
// what came of it, and what would have spared it. It holds values only.
package explain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// Eviction is one that a journal tells of.
type Eviction struct {
	Pod   journal.PodRef `json:"pod"`
	Time  time.Time      `json:"time"`
	Cause string         `json:"cause"`
	// Message is what the pod's status and event say.
	Message      string `json:"message"`
	GraceSeconds int64  `json:"graceSeconds"`
	// Expected is what its end was to return, by signal in its unit.
	Expected map[evictionapi.Signal]int64 `json:"expected,omitempty"`
	// Steps are what came of it, in order.
	Steps []Step `json:"steps,omitempty"`
	// Measured is by how much the signals rose, once that was known.
	Measured map[evictionapi.Signal]int64 `json:"measured,omitempty"`

	// pass is the record that decided it, and config the one that it went by.
	pass, config *journal.Record
	before       []*journal.Record
}

// Step is something that happened.
type Step struct {
	// After is the time since the eviction was decided, negative before.
	After journal.Seconds `json:"after"`
	What  string          `json:"what"`
}

// ContainersEnded is the step at which a kill has succeeded.
const ContainersEnded = "its containers have ended"

// Remembered records before an eviction, and how far back they are told of: a
// minute's passes near a threshold.
const (
	remembered = 200
	lookBack   = 10 * time.Minute
)

// History follows a journal record by record. The zero value has seen nothing.
type History struct {
	config    *journal.Record
	recent    []*journal.Record
	inFlight  map[types.UID]*Eviction
	Evictions []*Eviction
	// Last is the last pass that was not after Until, if that is set.
	Until      time.Time
	Last       *journal.Record
	LastConfig *journal.Record
	lastBefore []*journal.Record
	Records    int
}

// See takes the next record.
func (h *History) See(r *journal.Record) {
	h.Records++
	switch r.Kind {
	case journal.KindConfig:
		h.config = r
		return
	case journal.KindOutcome:
		h.outcome(r)
	case journal.KindPass, journal.KindHeartbeat:
		if h.Until.IsZero() || !r.Time.After(h.Until) {
			h.Last, h.LastConfig, h.lastBefore = r.Keep(), h.config, h.recent
		}
		h.released(r)
		h.decided(r)
	}
	if r.Kind == journal.KindHeartbeat {
		return
	}
	// Slices of it are kept by evictions, so what it holds is never overwritten.
	if h.recent = append(h.recent, r); len(h.recent) > 2*remembered {
		h.recent = slices.Clone(h.recent[len(h.recent)-remembered:])
	}
}

func (h *History) decided(r *journal.Record) {
	if r.Decision == nil {
		return
	}
	begin := func(e journal.Eviction, expected map[evictionapi.Signal]int64) {
		if _, known := h.inFlight[e.UID]; known {
			return
		}
		eviction := &Eviction{
			Pod: e.PodRef, Time: r.Time, Cause: e.Cause, Message: e.Message, GraceSeconds: e.GraceSeconds, Expected: expected,
			pass: r, config: h.config, before: h.recent,
		}
		if h.inFlight == nil {
			h.inFlight = map[types.UID]*Eviction{}
		}
		h.inFlight[e.UID] = eviction
		h.Evictions = append(h.Evictions, eviction)
	}
	for i := range r.Decision.Shortages {
		for _, victim := range r.Decision.Shortages[i].Victims {
			begin(victim.Eviction, victim.Gains)
		}
	}
	for _, over := range r.Decision.OverLimit {
		begin(over, nil)
	}
	for _, kill := range r.Decision.Kills {
		if eviction := h.inFlight[kill.UID]; eviction != nil && kill.Again != "" {
			eviction.note(r.Time, "killed again ("+kill.Again+"), grace "+seconds(kill.GraceSeconds))
		}
	}
}

func (h *History) outcome(r *journal.Record) {
	if r.Outcome.Pod == nil {
		return
	}
	eviction := h.inFlight[r.Outcome.Pod.UID]
	if eviction == nil {
		return
	}
	switch r.Outcome.Kind {
	case journal.OutcomeKilled:
		eviction.note(r.Time, ContainersEnded)
	case journal.OutcomeKillFailed:
		eviction.note(r.Time, "the kill failed: "+r.Outcome.Error)
	case journal.OutcomeKillSlow:
		eviction.note(r.Time, "the kill takes long, others go on")
	case journal.OutcomeCleanedUp:
		eviction.note(r.Time, "everything that it held has been given back")
	}
}

func (h *History) released(r *journal.Record) {
	for _, release := range r.Released {
		if eviction := h.inFlight[release.Pod.UID]; eviction != nil {
			eviction.Measured = release.Measured
			eviction.note(r.Time, "its return is awaited no more")
			delete(h.inFlight, release.Pod.UID)
		}
	}
}

func (e *Eviction) note(at time.Time, what string) {
	e.Steps = append(e.Steps, Step{After: journal.Seconds(at.Sub(e.Time)), What: what})
}

// Of returns the evictions of pods of a name, in a namespace unless that is empty.
func (h *History) Of(namespace, name string) []*Eviction {
	var found []*Eviction
	for _, eviction := range h.Evictions {
		if eviction.Pod.Name == name && (namespace == "" || eviction.Pod.Namespace == namespace) {
			found = append(found, eviction)
		}
	}
	return found
}
