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
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Look is what a node looks like at a moment.
type Look struct {
	Node    string      `json:"node,omitempty"`
	Time    time.Time   `json:"time"`
	Signals []SignalRow `json:"signals"`
	// Conditions that the node has.
	Conditions []string `json:"conditions,omitempty"`
	// InFlight are pods that are being evicted.
	InFlight []string `json:"inFlight,omitempty"`
}

// SignalRow is a threshold and how far it is, in the signal's unit.
type SignalRow struct {
	Signal    evictionapi.Signal `json:"signal"`
	Hard      bool               `json:"hard"`
	Available int64              `json:"available"`
	Capacity  int64              `json:"capacity"`
	Threshold int64              `json:"threshold"`
	// Headroom is what is available above the threshold; negative when it is met.
	Headroom int64 `json:"headroom"`
	// Seconds until it is crossed at the present pace; absent while it comes no nearer.
	Seconds *float64 `json:"secondsToThreshold,omitempty"`
	// Next are the pods that would be evicted, and Reclaim what would be deleted
	// first, if it were crossed now; Known says whether the pods are known.
	Next    []string `json:"next,omitempty"`
	Reclaim []string `json:"reclaim,omitempty"`
	Known   bool     `json:"podsKnown"`
}

// Node is what a look is taken at.
type Node struct {
	Name   string
	At     time.Time
	Policy decide.Policy
	Seen   observe.Snapshot
	Pods   []*v1.Pod
	// Known says whether Pods are all that run.
	Known bool
	// Before is what was seen a while ago, for the pace.
	Before observe.Observations
	State  decide.State
}

// Look shows each threshold, and who would go if it were crossed now: a dry run of
// the step with just less available than it asks for, as if nothing could be deleted
// first.
func (n Node) Look() Look {
	look := Look{Node: n.Name, Time: n.At}
	for _, condition := range n.State.Conditions {
		look.Conditions = append(look.Conditions, string(condition))
	}
	for _, entry := range n.State.Ledger.Entries {
		look.InFlight = append(look.InFlight, entry.Eviction.Pod.Namespace+"/"+entry.Eviction.Pod.Name)
	}
	for _, t := range n.Policy.Thresholds {
		o, seen := n.Seen.Observations[t.Signal]
		traits, known := observe.TraitsOf(t.Signal)
		if !seen || !known || !threshold.Watched(t) || traits.Filesystem == observe.ContainerFs {
			continue // a container filesystem is one of the others
		}
		limit := threshold.Quantity(t, o.Capacity).Value()
		row := SignalRow{
			Signal: t.Signal, Hard: threshold.Hard(t), Available: o.Available, Capacity: o.Capacity, Threshold: limit, Headroom: o.Available - limit, Known: n.Known,
		}
		if left := secondsUntil(o, n.Before[t.Signal], limit); !math.IsInf(left, 1) {
			row.Seconds = &left
		}
		if n.Known {
			row.Next, row.Reclaim = n.dryRun(t, o, limit)
		}
		look.Signals = append(look.Signals, row)
	}
	return look
}

func secondsUntil(now, before observe.Observation, limit int64) float64 {
	headroom := float64(now.Available - limit)
	if headroom <= 0 {
		return 0
	}
	elapsed := now.Time.Sub(before.Time).Seconds()
	loss := float64(before.Available - now.Available)
	if before.Time.IsZero() || elapsed <= 0 || loss <= 0 {
		return math.Inf(1)
	}
	return headroom / (loss / elapsed)
}

// dryRunSteps are those of a reclaim, of which a filesystem has two, and one for pods.
const dryRunSteps = 3

// dryRun takes the step with one threshold crossed and no other.
func (n Node) dryRun(t evictionapi.Threshold, o observe.Observation, limit int64) (next, reclaim []string) {
	policy := n.Policy
	policy.LocalStorageLimits = false
	crossed := t
	crossed.GracePeriod = 0
	policy.Thresholds = []evictionapi.Threshold{crossed}
	seen := n.Seen
	o.Available = min(o.Available, max(limit-1, 0))
	state := decide.State{}
	// Each step sees the same, a second later: the steps of a reclaim come first, and the
	// pods when samples from after them show nothing more.
	for second := range dryRunSteps {
		now := n.At.Add(time.Duration(second) * time.Second)
		o.Time = now
		seen.Observations = observe.Observations{t.Signal: o}
		var decision decide.Decision
		state, decision = decide.Step(policy, state, slices.Clone(n.Pods), seen, now)
		for _, order := range decision.Reclaims {
			for _, step := range order.Steps {
				reclaim = append(reclaim, step.String())
			}
			state.Reclaims = state.Reclaims.Ended(order.Filesystem, 0, now)
		}
		if decision.Shortage != nil {
			for _, step := range decision.Shortage.Reclaim {
				reclaim = append(reclaim, step.String())
			}
		}
		if gone, names := victims(decision); len(gone) > 0 {
			return names, reclaim
		}
	}
	return nil, reclaim
}
