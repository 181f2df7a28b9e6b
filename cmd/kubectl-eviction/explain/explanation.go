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

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Explanation says why a pod went then.
type Explanation struct {
	Node string `json:"node,omitempty"`
	*Eviction
	// Shortages of the pass, the one that the pod went for first.
	Shortages []Shortage `json:"shortages,omitempty"`
	// Woken says what woke the pass.
	Woken string `json:"woken"`
	// Before are the steps before.
	Before []Step `json:"before,omitempty"`
	// WouldHaveSpared it.
	WouldHaveSpared []Spared `json:"wouldHaveSpared,omitempty"`
	// Owner of the pod, where its end is in vain: a DaemonSet puts it back.
	Note string `json:"note,omitempty"`
}

// Shortage is one, with what makes it one.
type Shortage struct {
	*journal.Shortage
	// Met are the thresholds, written out with what was available.
	Met []Met `json:"met"`
}

// signal is the one that counts.
func signalOf(s *journal.Shortage) evictionapi.Signal {
	if len(s.Thresholds) == 0 {
		return ""
	}
	return s.Thresholds[0].Signal
}

// Stalls says whether the shortage is a pressure.
func (s Shortage) Stalls() bool { return stalls(s.Shortage) }

func stalls(s *journal.Shortage) bool {
	traits, _ := observe.TraitsOf(signalOf(s))
	return traits.Stall != observe.NoStall
}

// Amount writes an amount of what is short for people.
func (s Shortage) Amount(n int64) string {
	if s.Stalls() {
		return Amount(signalOf(s.Shortage), n)
	}
	return AmountOf(s.Resource, n)
}

// Met is a threshold and what it was compared with, in the signal's unit.
type Met struct {
	Signal    evictionapi.Signal `json:"signal"`
	Threshold string             `json:"threshold"`
	Quantity  int64              `json:"quantity"`
	Goal      int64              `json:"goal"`
	Available int64              `json:"available"`
	Capacity  int64              `json:"capacity"`
	// Age of the numbers, and for how long the threshold had been met.
	Age   *journal.Seconds `json:"age,omitempty"`
	Since journal.Seconds  `json:"since"`
}

// Explain explains an eviction.
func (e *Eviction) Explain() (*Explanation, error) {
	x := &Explanation{Eviction: e, Woken: woken(e.pass), Before: stepsBefore(e.before, e.Time)}
	if e.config != nil {
		x.Node = e.config.Config.Node
	}
	for i := range e.pass.Decision.Shortages {
		shortage, err := e.shortageWith(&e.pass.Decision.Shortages[i])
		if err != nil {
			return nil, err
		}
		x.Shortages = append(x.Shortages, shortage)
	}
	own := e.shortage()
	slices.SortStableFunc(x.Shortages, func(a, b Shortage) int {
		switch {
		case a.Shortage == own:
			return -1
		case b.Shortage == own:
			return 1
		}
		return 0
	})
	for _, pod := range e.pass.Pods {
		if kind, name, _ := strings.Cut(pod.Owner, "/"); pod.UID == e.Pod.UID && kind == "DaemonSet" {
			x.Note = fmt.Sprintf("its DaemonSet %s puts it back on this node at once; the shortage will be back with it", name)
		}
	}
	var err error
	x.WouldHaveSpared, err = e.Spare()
	return x, err
}

func (e *Eviction) shortageWith(s *journal.Shortage) (Shortage, error) {
	shortage := Shortage{Shortage: s}
	if e.config == nil {
		return shortage, nil
	}
	met, err := MetBy(e.pass, e.config, s.Thresholds)
	shortage.Met = met
	return shortage, err
}

// MetBy writes out the thresholds that stand in a pass.
func MetBy(pass, config *journal.Record, standings []journal.Standing) ([]Met, error) {
	policy, err := config.Config.Policy()
	if err != nil {
		return nil, err
	}
	var met []Met
	for _, standing := range standings {
		t, err := standing.Threshold(policy)
		if err != nil {
			return nil, err
		}
		o := pass.Observations[standing.Signal]
		written := standing.Other
		if standing.Index != nil {
			written = &config.Config.Thresholds[*standing.Index]
		}
		met = append(met, Met{
			Signal: standing.Signal, Threshold: written.String(), Quantity: threshold.Quantity(t, o.Capacity).Value(), Goal: threshold.Goal(t, o.Capacity).Value(),
			Available: o.Available, Capacity: o.Capacity, Age: o.Age, Since: standing.Since,
		})
	}
	return met, nil
}

// reasons says what each reason means.
var reasons = map[string]string{
	"start":    "the kubelet had just started",
	"interval": "the interval between two passes was over",
	"eviction": "pods had been evicted",
	"crossing": "a probe saw a threshold crossed, or about to be",
	"memcg":    "the kernel reported a memory cgroup",
	"grace":    "the grace period of a threshold was over",
	"outcome":  "a kill or a reclaim had ended",
	"trend":    "the summaries said that a threshold came near",
}

func woken(pass *journal.Record) string {
	if pass.Wake == nil {
		return ""
	}
	text, known := reasons[pass.Wake.Reason]
	if !known {
		text = pass.Wake.Reason
	}
	if latency := time.Duration(pass.Wake.Latency); latency >= time.Millisecond {
		text += fmt.Sprintf(", %s before the step", Duration(latency))
	}
	for _, signal := range observe.Signals() {
		if seen, found := pass.Wake.Seen[signal]; found {
			text += fmt.Sprintf("; it read %s of %s", Amount(signal, seen.Available), signal)
		}
	}
	return text
}

// stepsBefore tells what was decided and what ended in the minutes before.
func stepsBefore(records []*journal.Record, at time.Time) []Step {
	var steps []Step
	for _, r := range records {
		if at.Sub(r.Time) > lookBack {
			continue
		}
		note := func(format string, args ...any) {
			steps = append(steps, Step{After: journal.Seconds(r.Time.Sub(at)), What: fmt.Sprintf(format, args...)})
		}
		if o := r.Outcome; o != nil {
			switch {
			case o.Reclaim != nil && o.Reclaim.Freed != nil:
				note("deleted %s: %s wanted, %s freed", strings.Join(o.Reclaim.Steps, ", "), Amount(o.Reclaim.Signal, o.Reclaim.Wanted), Amount(o.Reclaim.Signal, *o.Reclaim.Freed))
			case o.Reclaim != nil:
				note("deleted %s: %s wanted, nobody knows what was freed", strings.Join(o.Reclaim.Steps, ", "), Amount(o.Reclaim.Signal, o.Reclaim.Wanted))
			case o.Pod != nil:
				note("%s: %s", o.Pod, strings.ReplaceAll(string(o.Kind), "-", " "))
			}
		}
		if r.Decision == nil || r.Abridged {
			continue
		}
		for _, order := range r.Decision.Reclaims {
			note("began to delete %s: %s of %s wanted", strings.Join(order.Steps, ", "), Amount(order.Signal, order.Wanted), order.Signal)
		}
		for _, kill := range r.Decision.Kills {
			note("killed %s for %s, grace %s", kill.PodRef, kill.Cause, seconds(kill.GraceSeconds))
		}
		for i := range r.Decision.Shortages {
			if s := &r.Decision.Shortages[i]; s.Outside {
				shown := Shortage{Shortage: s}
				note("short of %s, and no pod evicted: those that may be hold %s of %s in use", s.Resource, shown.Amount(s.Held), shown.Amount(s.Used))
			}
		}
	}
	return steps
}

// Moment is what a pass saw and decided, whether or not a pod went.
type Moment struct {
	Node         string               `json:"node,omitempty"`
	Time         time.Time            `json:"time"`
	Woken        string               `json:"woken"`
	Observations journal.Observations `json:"observations"`
	Conditions   []string             `json:"conditions,omitempty"`
	Met          []Met                `json:"met,omitempty"`
	Shortages    []Shortage           `json:"shortages,omitempty"`
	Before       []Step               `json:"before,omitempty"`
	Decided      []string             `json:"decided,omitempty"`
}

// Moment explains the last pass that was seen before Until.
func (h *History) Moment() (*Moment, error) {
	pass, config := h.Last, h.LastConfig
	m := &Moment{Time: pass.Time, Woken: woken(pass), Observations: pass.Observations, Before: stepsBefore(h.lastBefore, pass.Time)}
	for _, condition := range pass.Conditions {
		m.Conditions = append(m.Conditions, string(condition))
	}
	if config == nil {
		return m, nil
	}
	m.Node = config.Config.Node
	var err error
	if m.Met, err = MetBy(pass, config, pass.Thresholds); err != nil || pass.Decision == nil {
		return m, err
	}
	e := Eviction{pass: pass, config: config}
	for i := range pass.Decision.Shortages {
		shortage, err := e.shortageWith(&pass.Decision.Shortages[i])
		if err != nil {
			return nil, err
		}
		m.Shortages = append(m.Shortages, shortage)
	}
	decided := *pass
	decided.Time, decided.Outcome = pass.Time, nil
	for _, step := range stepsBefore([]*journal.Record{&decided}, pass.Time) {
		m.Decided = append(m.Decided, step.What)
	}
	return m, nil
}
