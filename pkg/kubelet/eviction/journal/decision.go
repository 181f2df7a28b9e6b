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
	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Decision is what a pass decided.
type Decision struct {
	// OverLimit are evictions for limits of the pods' own; critical pods that exceed
	// theirs are left alone.
	OverLimit         []Eviction           `json:"overLimit,omitempty"`
	CriticalOverLimit []PodRef             `json:"criticalOverLimit,omitempty"`
	Unknown           []evictionapi.Signal `json:"unknown,omitempty"`
	Shortages         []Shortage           `json:"shortages,omitempty"`
	// Kills that the pass started.
	Kills []Kill `json:"kills,omitempty"`
	// Uncounted are evictions whose pods are gone though no kill reported success.
	Uncounted []Eviction     `json:"uncounted,omitempty"`
	Reclaims  []ReclaimOrder `json:"reclaims,omitempty"`
}

// Eviction is a pod that goes, and why.
type Eviction struct {
	PodRef
	GraceSeconds int64  `json:"graceSeconds"`
	Cause        string `json:"cause"`
	Message      string `json:"message"`
}

// Kill is an eviction that is carried out, or once more.
type Kill struct {
	Eviction
	// Again says why it is done once more: hastened or retried.
	Again string `json:"again,omitempty"`
}

// Shortage is a starved resource and what was decided about it, amounts in the
// signal's unit.
type Shortage struct {
	Resource v1.ResourceName `json:"resource"`
	// Thresholds that are starved, the one that counts first.
	Thresholds []Standing `json:"thresholds"`
	// Wanted is what is missing to the goal, Pending what victims in flight are yet
	// to return.
	Wanted  int64 `json:"wanted"`
	Pending int64 `json:"pending"`
	// Reclaim lists the steps to take before any pod goes.
	Reclaim []string `json:"reclaim,omitempty"`
	// Ranked: the pods are in question now, and not what can be reclaimed.
	Ranked     bool        `json:"ranked"`
	Candidates []Candidate `json:"candidates,omitempty"`
	// Spared are critical pods.
	Spared  []PodRef `json:"spared,omitempty"`
	Victims []Victim `json:"victims,omitempty"`
	// Outside: pods hold too little of what is used for an eviction to help.
	Outside bool  `json:"outside,omitempty"`
	Held    int64 `json:"held,omitempty"`
	Used    int64 `json:"used,omitempty"`
}

// Candidate is a pod with the keys that put it in its place.
type Candidate struct {
	PodRef
	// Group is how its use stands against its request: unknown, above, within, or
	// not compared.
	Group    string `json:"group"`
	Priority int32  `json:"priority"`
	NoStats  bool   `json:"noStats,omitempty"`
	// Excess is its use above its request, and Processes their number.
	Excess    int64  `json:"excess"`
	Processes uint64 `json:"processes,omitempty"`
	// Growth of its memory in bytes a second, for signals of pressure.
	Growth int64 `json:"growth,omitempty"`
	// Gain is what its end would return; absent if unknown.
	Gain *int64 `json:"gain,omitempty"`
}

// Victim is a pod that goes, and what its end is expected to return by signal.
type Victim struct {
	Eviction
	Gains map[evictionapi.Signal]int64 `json:"gains,omitempty"`
}

// ReclaimOrder asks for steps on a filesystem.
type ReclaimOrder struct {
	Filesystem string             `json:"filesystem"`
	Steps      []string           `json:"steps"`
	Signal     evictionapi.Signal `json:"signal"`
	Wanted     int64              `json:"wanted"`
	Available  int64              `json:"available"`
}

// groupNames are how the groups are written.
var groupNames = map[rank.Group]string{
	rank.Unknown: "unknown", rank.AboveRequest: "above", rank.WithinRequest: "within", rank.NotCompared: "not compared",
}

// decisionOf writes a decision; nil when it is to do nothing.
func decisionOf(decision decide.Decision, after decide.State, policy decide.Policy, clock frame) *Decision {
	written := Decision{Unknown: decision.Unknown}
	for _, eviction := range decision.OverLimit {
		written.OverLimit = append(written.OverLimit, evictionOf(eviction))
	}
	for _, pod := range decision.CriticalOverLimit {
		written.CriticalOverLimit = append(written.CriticalOverLimit, refTo(pod))
	}
	if decision.Shortage != nil {
		written.Shortages = append(written.Shortages, shortageOf(decision.Shortage, after, policy, clock))
	}
	for i := range decision.Shortages {
		written.Shortages = append(written.Shortages, shortageOf(&decision.Shortages[i], after, policy, clock))
	}
	for _, kill := range decision.Kills {
		again := ""
		if kill.Again != decide.NotAgain {
			again = kill.Again.String()
		}
		written.Kills = append(written.Kills, Kill{Eviction: evictionOf(kill.Eviction), Again: again})
	}
	for _, eviction := range decision.Uncounted {
		written.Uncounted = append(written.Uncounted, evictionOf(eviction))
	}
	for _, order := range decision.Reclaims {
		written.Reclaims = append(written.Reclaims, ReclaimOrder{
			Filesystem: filesystemNames[order.Filesystem], Steps: stepNames(order.Steps), Signal: order.Signal, Wanted: order.Wanted, Available: order.Available,
		})
	}
	if written.nothing() {
		return nil
	}
	return &written
}

func (d *Decision) nothing() bool {
	return len(d.OverLimit)+len(d.CriticalOverLimit)+len(d.Unknown)+len(d.Shortages)+len(d.Kills)+len(d.Uncounted)+len(d.Reclaims) == 0
}

// Acts says whether something is killed or reclaimed.
func (d *Decision) Acts() bool {
	if d == nil {
		return false
	}
	if len(d.OverLimit)+len(d.Kills)+len(d.Reclaims) > 0 {
		return true
	}
	for i := range d.Shortages {
		if len(d.Shortages[i].Victims)+len(d.Shortages[i].Reclaim) > 0 {
			return true
		}
	}
	return false
}

func evictionOf(eviction decide.Eviction) Eviction {
	return Eviction{PodRef: refTo(eviction.Pod), GraceSeconds: eviction.GracePeriodSeconds, Cause: eviction.Cause, Message: eviction.Message}
}

func stepNames(steps []decide.ReclaimStep) []string {
	var names []string
	for _, step := range steps {
		names = append(names, step.String())
	}
	return names
}

func shortageOf(s *decide.Shortage, after decide.State, policy decide.Policy, clock frame) Shortage {
	written := Shortage{
		Resource: s.Resource, Wanted: s.Wanted, Pending: s.Pending, Reclaim: stepNames(s.Reclaim), Ranked: s.Ranked,
		Outside: s.Outside, Held: s.Held, Used: s.Used,
	}
	for _, starved := range s.Starved {
		for _, standing := range after.Standings {
			if standing.Threshold == starved {
				written.Thresholds = append(written.Thresholds, standingsOf(threshold.Standings{standing}, policy, clock)...)
				break
			}
		}
	}
	for _, candidate := range s.Candidates {
		written.Candidates = append(written.Candidates, candidateOf(candidate))
	}
	for _, pod := range s.Spared {
		written.Spared = append(written.Spared, refTo(pod))
	}
	if s.Victim != nil {
		written.Victims = append(written.Victims, Victim{Eviction: evictionOf(*s.Victim)})
	}
	for i, eviction := range s.Victims {
		written.Victims = append(written.Victims, Victim{Eviction: evictionOf(eviction), Gains: s.Gains[i]})
	}
	return written
}

func candidateOf(candidate decide.Candidate) Candidate {
	written := Candidate{
		PodRef: refTo(candidate.Pod), Group: groupNames[candidate.Keys.Group], Priority: candidate.Keys.Priority, NoStats: candidate.Keys.NoStats,
		Excess: candidate.Keys.Excess.Int64(), Processes: candidate.Keys.Processes, Growth: candidate.Keys.Growth,
	}
	if candidate.Gain.Known {
		written.Gain = &candidate.Gain.Amount
	}
	return written
}

// ReclaimedOutcome is that of a reclaim's steps: what the runtime claims to have
// freed, in bytes, and what was available more afterwards, in the signal's unit;
// nil if unknown.
func ReclaimedOutcome(order decide.ReclaimOrder, claimed int64, freed *int64) Outcome {
	return Outcome{Kind: OutcomeReclaimed, Reclaim: &ReclaimOutcome{
		Filesystem: filesystemNames[order.Filesystem], Steps: stepNames(order.Steps), Signal: order.Signal, Wanted: order.Wanted, Freed: freed, Claimed: claimed,
	}}
}

// KillOutcome is that of a kill; err may be nil.
func KillOutcome(kind OutcomeKind, pod *v1.Pod, err error) Outcome {
	ref := refTo(pod)
	outcome := Outcome{Kind: kind, Pod: &ref}
	if err != nil {
		outcome.Error = err.Error()
	}
	return outcome
}
