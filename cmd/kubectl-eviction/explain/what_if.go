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
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// WhatIf takes the steps of a journal one after the other by another policy.
//
// The numbers that were recorded are those of a node on which the recorded decisions
// were carried out. A pod that only the changed policy evicts stays in them: it is
// taken off the pods, and what it was to return is added to what is available. What
// a pod returned that the changed policy leaves alone is taken off.
type WhatIf struct {
	// Change makes the other policy of the one that was recorded.
	Change func(decide.Policy) (decide.Policy, error)

	recorded, changed decide.Policy
	configured        bool
	state             decide.State
	// gone are the pods that only one of the two has evicted, and what that returns.
	goneHere, goneThere map[types.UID]decide.Gains
	result              WhatIfResult
}

// WhatIfResult is what would have been different.
type WhatIfResult struct {
	Steps int `json:"steps"`
	// Unknown steps would have looked for victims among pods that are not recorded.
	Unknown int `json:"unknown"`
	// Different counts the steps that decide something else; Differences are the first
	// thousand of them.
	Different   int         `json:"different"`
	Differences []Different `json:"differences"`
	Recorded    Count       `json:"recorded"`
	Changed     Count       `json:"changed"`
}

// Count is what was decided in all.
type Count struct {
	Evictions int `json:"evictions"`
	Reclaims  int `json:"reclaims"`
}

func (c Count) String() string {
	return fmt.Sprintf("%d evictions, %d reclaims", c.Evictions, c.Reclaims)
}

// Different is a step that decides something else.
type Different struct {
	Time     time.Time `json:"time"`
	Recorded []string  `json:"recorded"`
	Changed  []string  `json:"changed"`
}

// keptDifferences bounds what is kept of a journal in which every step differs.
const keptDifferences = 1000

// Result returns what came of it so far.
func (w *WhatIf) Result() WhatIfResult { return w.result }

// See takes the next record.
func (w *WhatIf) See(r *journal.Record) error {
	switch r.Kind {
	case journal.KindConfig:
		return w.configure(r)
	case journal.KindOutcome:
		w.outcome(r)
	case journal.KindPass, journal.KindHeartbeat:
		if !w.configured {
			return fmt.Errorf("record %d: no record of the configuration comes before it", r.Sequence)
		}
		if !r.Abridged {
			return w.pass(r)
		}
	}
	return nil
}

func (w *WhatIf) configure(r *journal.Record) error {
	policy, err := r.Config.Policy()
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Sequence, err)
	}
	changed, err := w.Change(policy)
	if err != nil {
		return err
	}
	w.recorded = policy
	if w.configured {
		// Thresholds are the same ones for a step only if they are the same values.
		w.state = journal.Adopt(w.state, changed, r.Time)
	}
	w.changed, w.configured = changed, true
	if w.goneHere == nil {
		w.goneHere, w.goneThere = map[types.UID]decide.Gains{}, map[types.UID]decide.Gains{}
	}
	return nil
}

// outcome tells the changed policy's ledger what came of kills that both decided;
// those that only it decided are taken to succeed at once.
func (w *WhatIf) outcome(r *journal.Record) {
	o := r.Outcome
	if o.Pod != nil {
		switch o.Kind {
		case journal.OutcomeKilled:
			w.state.Ledger = w.state.Ledger.Killed(o.Pod.UID, r.Time)
		case journal.OutcomeKillFailed:
			w.state.Ledger = w.state.Ledger.Failed(o.Pod.UID, r.Time)
		case journal.OutcomeCleanedUp:
			w.state.Ledger = w.state.Ledger.CleanedUp(o.Pod.UID, r.Time)
		}
	}
	if o.Reclaim != nil {
		w.endReclaims(o.Reclaim.Claimed, r.Time)
	}
}

func (w *WhatIf) endReclaims(claimed int64, at time.Time) {
	for _, filesystem := range slices.Sorted(maps.Keys(w.state.Reclaims)) {
		if w.state.Reclaims[filesystem].Running {
			w.state.Reclaims = w.state.Reclaims.Ended(filesystem, claimed, at)
		}
	}
}

func (w *WhatIf) pass(r *journal.Record) error {
	input, err := r.Input(w.recorded)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Sequence, err)
	}
	w.adjust(&input)
	state := w.state
	if state.Remembered == nil {
		state.Remembered = input.Before.Remembered
	}
	after, decision := decide.Step(w.changed, state, input.Pods, input.Seen, r.Time)
	w.result.Steps++
	changed := actions(decision)
	recorded := recordedActions(r.Decision)
	w.result.Recorded.add(r.Decision)
	evicted, _ := victims(decision)
	w.result.Changed.Evictions += len(newOf(decision))
	w.result.Changed.Reclaims += len(decision.Reclaims)
	if lacksPods(r, decision) {
		w.result.Unknown++
	}
	if !slices.Equal(changed, recorded) {
		w.result.Different++
	}
	if !slices.Equal(changed, recorded) && len(w.result.Differences) < keptDifferences {
		w.result.Differences = append(w.result.Differences, Different{Time: r.Time, Recorded: recorded, Changed: changed})
	}
	w.follow(r, decision, evicted, &after)
	w.state = after
	return nil
}

// lacksPods says whether a decision would have needed pods that are not recorded.
func lacksPods(r *journal.Record, decision decide.Decision) bool {
	ranks := decision.Shortage != nil || slices.ContainsFunc(decision.Shortages, func(s decide.Shortage) bool { return s.Ranked })
	return ranks && !Ranked(r)
}

// Ranked says whether a record holds all the pods of the node: some were ranked.
func Ranked(r *journal.Record) bool {
	return r.Decision != nil && !r.Abridged && slices.ContainsFunc(r.Decision.Shortages, func(s journal.Shortage) bool { return s.Ranked })
}

// adjust makes the numbers those of a node on which the changed decisions were
// carried out.
func (w *WhatIf) adjust(input *journal.Input) {
	input.Pods = slices.DeleteFunc(input.Pods, func(pod *v1.Pod) bool {
		_, gone := w.goneHere[pod.UID]
		return gone
	})
	add := func(gains decide.Gains, sign int64) {
		for signal, gain := range gains {
			if o, found := input.Seen.Observations[signal]; found {
				o.Available = min(max(o.Available+sign*gain, 0), o.Capacity)
				input.Seen.Observations[signal] = o
			}
		}
	}
	for _, gains := range w.goneHere {
		add(gains, 1)
	}
	for _, gains := range w.goneThere {
		add(gains, -1)
	}
}

// follow notes who has gone on one of the two nodes alone.
func (w *WhatIf) follow(r *journal.Record, decision decide.Decision, evicted map[types.UID]bool, after *decide.State) {
	there := map[types.UID]decide.Gains{}
	if r.Decision != nil {
		for i := range r.Decision.Shortages {
			for _, victim := range r.Decision.Shortages[i].Victims {
				there[victim.UID] = victim.Gains
			}
		}
		for _, over := range r.Decision.OverLimit {
			there[over.UID] = nil
		}
	}
	for uid := range evicted {
		if _, both := there[uid]; both {
			delete(there, uid)
			continue
		}
		if _, late := w.goneThere[uid]; late {
			delete(w.goneThere, uid) // it had gone there before
			continue
		}
		entry, _ := after.Ledger.Of(uid)
		gains := entry.Gains
		if gains == nil {
			gains = gainsIn(decision, uid)
		}
		w.goneHere[uid] = gains
		// Nothing is recorded of a kill that never was; it is taken to succeed.
		after.Ledger = after.Ledger.Killed(uid, r.Time).CleanedUp(uid, r.Time)
	}
	for uid, gains := range there {
		if _, early := w.goneHere[uid]; early {
			delete(w.goneHere, uid)
			continue
		}
		w.goneThere[uid] = gains
	}
	if len(decision.Reclaims) > 0 && (r.Decision == nil || len(r.Decision.Reclaims) == 0) {
		w.state = *after
		w.endReclaims(0, r.Time)
		*after = w.state
	}
}

func gainsIn(decision decide.Decision, uid types.UID) decide.Gains {
	if s := decision.Shortage; s != nil {
		for _, candidate := range s.Candidates {
			if candidate.Pod.UID == uid && candidate.Gain.Known {
				return decide.Gains{s.Threshold.Signal: candidate.Gain.Amount}
			}
		}
	}
	return nil
}

// newOf lists the pods that a decision evicts for the first time.
func newOf(decision decide.Decision) []types.UID {
	var uids []types.UID
	for _, kill := range decision.Kills {
		if kill.Again == decide.NotAgain {
			uids = append(uids, kill.Eviction.Pod.UID)
		}
	}
	if len(uids) == 0 {
		gone, _ := victims(decision)
		if len(decision.Kills) == 0 {
			uids = slices.Sorted(maps.Keys(gone))
		}
	}
	return uids
}

func (c *Count) add(d *journal.Decision) {
	if d == nil {
		return
	}
	gone := map[types.UID]bool{}
	for i := range d.Shortages {
		for _, victim := range d.Shortages[i].Victims {
			gone[victim.UID] = true
		}
	}
	for _, over := range d.OverLimit {
		gone[over.UID] = true
	}
	c.Evictions += len(gone)
	c.Reclaims += len(d.Reclaims)
}

func actions(decision decide.Decision) []string {
	var what []string
	_, names := victims(decision)
	for _, name := range names {
		what = append(what, "evict "+name)
	}
	for _, order := range decision.Reclaims {
		for _, step := range order.Steps {
			what = append(what, "delete "+step.String())
		}
	}
	if decision.Shortage != nil {
		for _, step := range decision.Shortage.Reclaim {
			what = append(what, "delete "+step.String())
		}
	}
	return what
}

// recordedActions are a recorded decision's, written as actions writes them.
func recordedActions(d *journal.Decision) []string {
	if d == nil {
		return nil
	}
	var what, names []string
	for i := range d.Shortages {
		for _, victim := range d.Shortages[i].Victims {
			names = append(names, victim.String())
		}
	}
	for _, kill := range d.Kills {
		names = append(names, kill.String())
	}
	for _, over := range d.OverLimit {
		names = append(names, over.String())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		what = append(what, "evict "+name)
	}
	for _, order := range d.Reclaims {
		for _, step := range order.Steps {
			what = append(what, "delete "+step)
		}
	}
	for i := range d.Shortages {
		if len(d.Reclaims) > 0 {
			break
		}
		for _, step := range d.Shortages[i].Reclaim {
			what = append(what, "delete "+step)
		}
	}
	return what
}
