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

package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is a row of the table, and what a mark links to.
type event struct {
	ID   int
	At   time.Time
	Kind string
	What string
	// Marked: the drawing has a mark of its own for it. Changes of the node that are
	// close together share one, and so do very many kills.
	Marked bool
	// of is the Kill, Reclaim, Release, Span or Note; nil for a crowd.
	of any
}

// Clock is the time for people, and Machine the one for programs.
func (e event) Clock() string { return e.At.UTC().Format("2006-01-02 15:04:05.000") }

// Machine is the time as RFC 3339 has it.
func (e event) Machine() string { return e.At.UTC().Format(time.RFC3339Nano) }

// events returns all that the drawing marks, in the order of time, numbered from 1.
func (t *Timeline) events() []event {
	var all []event
	for _, k := range t.Kills.Kept() {
		all = append(all, event{At: k.Decided, Kind: "kill", What: k.describe(), of: k})
	}
	for _, r := range t.Reclaims.Kept() {
		all = append(all, event{At: r.From, Kind: "reclaim", What: r.describe(), of: r})
	}
	for _, r := range t.Releases.Kept() {
		all = append(all, event{At: r.At, Kind: "release", What: r.describe(), of: r})
	}
	for _, condition := range slices.Sorted(maps.Keys(t.Conditions)) {
		all = append(all, spanEvents("condition", t.Conditions[condition])...)
	}
	all = append(all, spanEvents("gap", &t.Gaps)...)
	for _, note := range t.Notes.Kept() {
		all = append(all, event{At: note.At, Kind: "node", What: note.What, of: note})
	}
	for _, crowds := range []struct {
		kind, what string
		all        []Crowd
	}{
		{"kill", "more kills about this time", t.Kills.Crowds()}, {"reclaim", "more reclaims about this time", t.Reclaims.Crowds()},
		{"release", "more releases about this time", t.Releases.Crowds()}, {"node", "more changes about this time", t.Notes.Crowds()},
	} {
		for _, c := range crowds.all {
			all = append(all, event{At: c.At, Kind: crowds.kind, What: fmt.Sprintf("%s %s", thousands(int64(c.N)), crowds.what)})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Kind, b.Kind)) })
	for i := range all {
		all[i].ID = i + 1
	}
	return all
}

func spanEvents(kind string, spans *Spans) []event {
	var events []event
	for i := range spans.all {
		s := &spans.all[i]
		events = append(events, event{At: s.From, Kind: kind, What: s.describe(), of: s})
	}
	return events
}

func (s *Span) describe() string {
	if s.N > 1 {
		return fmt.Sprintf("%d times within %s, the first: %s", s.N, ago(s.To.Sub(s.From)), s.What)
	}
	return fmt.Sprintf("%s (%s)", s.What, ago(s.To.Sub(s.From)))
}

func (k *Kill) describe() string {
	parts := []string{fmt.Sprintf("#%d %s", k.Number, k.Pod)}
	if k.Cause != "" {
		parts = append(parts, "for "+k.Cause)
	}
	parts = append(parts, k.course()...)
	for _, f := range k.Failures {
		parts = append(parts, fmt.Sprintf("failed after %s: %s", ago(f.At.Sub(k.Decided)), f.What))
	}
	for _, a := range k.Again {
		parts = append(parts, fmt.Sprintf("%s after %s", a.What, ago(a.At.Sub(k.Decided))))
	}
	if k.Message != "" {
		parts = append(parts, strings.TrimSpace(k.Message))
	}
	return strings.Join(parts, "; ")
}

// course is how a kill went, in few words.
func (k *Kill) course() []string {
	parts := []string{"grace " + ago(k.Grace)}
	if !k.Slow.IsZero() {
		parts = append(parts, "slow after "+ago(k.Slow.Sub(k.Decided)))
	}
	if !k.Killed.IsZero() {
		parts = append(parts, "killed after "+ago(k.Killed.Sub(k.Decided)))
	}
	switch {
	case !k.CleanedUp.IsZero() && k.CleanedUp == k.Killed:
	case !k.CleanedUp.IsZero():
		parts = append(parts, "cleaned up after "+ago(k.CleanedUp.Sub(k.Decided)))
	case !k.Lost.IsZero() && len(k.Failures) > 0 && k.Killed.IsZero():
		parts = append(parts, "given up")
	case !k.Lost.IsZero():
		parts = append(parts, "its clean-up is not recorded")
	default:
		parts = append(parts, "in flight at the end")
	}
	return parts
}

func (r *Reclaim) describe() string {
	u := unitOf(r.Signal)
	text := fmt.Sprintf("%s of %s: %s of %s wanted", strings.Join(r.Steps, ", "), r.Filesystem, u.amount(r.Wanted), r.Signal)
	switch {
	case r.To.IsZero():
		return text + "; no outcome is recorded"
	case r.Freed == nil:
		text += ", nobody knows what was freed"
	default:
		text += fmt.Sprintf(", %s freed", u.amount(*r.Freed))
	}
	text += " after " + ago(r.To.Sub(r.From))
	if r.Claimed > 0 {
		text += fmt.Sprintf("; the runtime says %s", unit{binary: true}.amount(r.Claimed))
	}
	return text
}

func (r *Release) describe() string {
	text := r.Pod.String()
	if r.Number > 0 {
		text = fmt.Sprintf("#%d %s", r.Number, text)
	}
	var parts []string
	for _, a := range r.Amounts {
		u := unitOf(a.Signal)
		parts = append(parts, fmt.Sprintf("%s: %s expected, it rose by %s", a.Signal, u.amount(a.Expected), u.amount(a.Measured)))
	}
	if len(parts) == 0 {
		parts = []string{"nothing was expected"}
	}
	return fmt.Sprintf("%s after %s; %s", text, ago(r.After), strings.Join(parts, "; "))
}

// brief is the release of what the pod was killed for.
func (r *Release) brief() string {
	for _, a := range r.Amounts {
		if string(a.Signal) == r.Cause || len(r.Amounts) == 1 {
			u := unitOf(a.Signal)
			return fmt.Sprintf("%s expected, rose by %s", u.amount(a.Expected), u.amount(a.Measured))
		}
	}
	if len(r.Amounts) == 0 {
		return "nothing expected"
	}
	u := unitOf(r.Amounts[0].Signal)
	return fmt.Sprintf("%s of %s expected, rose by %s", u.bare(r.Amounts[0].Expected), r.Amounts[0].Signal, u.bare(r.Amounts[0].Measured))
}
