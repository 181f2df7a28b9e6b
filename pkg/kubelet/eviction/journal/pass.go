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
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Pass is what the loop hands over: what a step was given, and what it returned.
// Nothing of it may change any more; the writer reads it later.
type Pass struct {
	// Now is the time that the step was given.
	Now time.Time
	// Reason of the wake-up, and when that was.
	Reason  string
	WokenAt time.Time
	// Crossed is what a probe read of the signals that woke the pass, and Probed what
	// it last read of each.
	Crossed, Probed observe.Observations

	Policy        decide.Policy
	Before, After decide.State
	Observations  observe.Observations
	Decision      decide.Decision
	// Pods that the step was given, and the stats of each, nil where there are none;
	// both may be left out where NeedsPods says so.
	Pods  []*v1.Pod
	Stats []*statsapi.PodStats
}

// NeedsPods says whether the record of a step holds pods at all.
func NeedsPods(before decide.State, decision decide.Decision) bool {
	return len(before.Ledger.Entries) > 0 || decision.Shortage != nil || len(decision.Shortages)+len(decision.OverLimit)+len(decision.CriticalOverLimit)+len(decision.Kills) > 0
}

// nearness is how many times a threshold must be available for its signal not to
// be near: with twice of it left there is as much to lose as there is to keep.
const nearness = 2

// quiet says whether nothing of a pass matters: no threshold is near or met, no
// condition stays, nothing is in flight and nothing was decided.
func (p *Pass) quiet() bool {
	return len(p.After.Standings)+len(p.Before.Standings)+len(p.After.Conditions)+len(p.Before.Ledger.Entries)+len(p.Before.Reclaims) == 0 &&
		decisionIsNothing(&p.Decision) && !slices.ContainsFunc(p.Policy.Thresholds, p.near)
}

func decisionIsNothing(d *decide.Decision) bool {
	return d.Shortage == nil && len(d.OverLimit)+len(d.CriticalOverLimit)+len(d.Unknown)+len(d.Shortages)+len(d.Kills)+len(d.Uncounted)+len(d.Reclaims) == 0
}

func (p *Pass) near(t evictionapi.Threshold) bool {
	seen, found := p.Observations[t.Signal]
	if traits, _ := observe.TraitsOf(t.Signal); traits.Stall != observe.NoStall {
		return found && threshold.Met(t, seen) // half of the time is always left
	}
	if !found || !threshold.Watched(t) {
		return false
	}
	return seen.Available/nearness < threshold.Quantity(t, seen.Capacity).Value()
}

// record writes the pass.
func (p *Pass) record() Record {
	clock := frame{p.Now}
	r := Record{
		Version: Version, Time: p.Now.UTC().Round(0), Kind: KindHeartbeat,
		Wake:         &Wake{Reason: p.Reason, Latency: Seconds(max(0, p.Now.Sub(p.WokenAt)))},
		Observations: observationsOf(p.Observations, p.Probed, clock),
	}
	if len(p.Crossed) > 0 {
		r.Wake.Seen = observationsOf(p.Crossed, nil, clock)
	}
	if p.quiet() {
		return r
	}
	r.Kind = KindPass
	r.Conditions = p.After.Conditions
	r.Thresholds = standingsOf(p.After.Standings, p.Policy, clock)
	r.State = stateOf(p.Before, p.Policy, clock)
	r.Decision = decisionOf(p.Decision, p.After, p.Policy, clock)
	r.Pods = p.pods(clock)
	r.Released = p.released()
	return r
}

func observationsOf(seen, probed observe.Observations, clock frame) Observations {
	written := make(Observations, len(seen))
	for signal, o := range seen {
		w := Observation{Available: o.Available, Capacity: o.Capacity, Reclaimable: o.Reclaimable, Age: clock.age(o.Time)}
		if p, found := probed[signal]; found && p.Time.Equal(o.Time) {
			w.Source = SourceConfirmed
		}
		written[signal] = w
	}
	return written
}

// pods writes those that the decision depends on: all of them where pods were
// ranked, else those in flight and over a limit.
func (p *Pass) pods(clock frame) []Pod {
	all := p.Decision.Shortage != nil || slices.ContainsFunc(p.Decision.Shortages, func(s decide.Shortage) bool { return s.Ranked })
	matters := map[*v1.Pod]bool{}
	for _, eviction := range p.Decision.OverLimit {
		matters[eviction.Pod] = true
	}
	for _, pod := range p.Decision.CriticalOverLimit {
		matters[pod] = true
	}
	// Growth is what a pod holds more than it did.
	grows := slices.ContainsFunc(p.Decision.Shortages, stalls) || p.Decision.Shortage != nil && stalls(*p.Decision.Shortage)
	var written []Pod
	for i, pod := range p.Pods {
		_, inFlight := p.Before.Ledger.Of(pod.UID)
		if !all && !matters[pod] && !inFlight {
			continue
		}
		w := podOf(pod, p.Stats[i], clock)
		if old, found := p.Before.Remembered[pod.UID]; found && (grows || !saysMemory(p.Stats[i])) {
			w.Recalled = &Recalled{Age: Seconds(clock.now.Sub(old.At)), Stats: statsOf(old.Stats, clock)}
		}
		written = append(written, w)
	}
	return written
}

func stalls(s decide.Shortage) bool {
	traits, _ := observe.TraitsOf(s.Threshold.Signal)
	return traits.Stall != observe.NoStall
}

// saysMemory says whether stats are good enough not to need older ones.
func saysMemory(stats *statsapi.PodStats) bool {
	return stats != nil && stats.Memory != nil && stats.Memory.WorkingSetBytes != nil &&
		*stats.Memory.WorkingSetBytes > 0 && *stats.Memory.WorkingSetBytes <= math.MaxInt64
}

// released tells of victims whose return is awaited no more.
func (p *Pass) released() []Release {
	var released []Release
	for _, settled := range p.Before.Ledger.Settled(p.After.Ledger, p.Observations) {
		r := Release{
			Pod: refTo(settled.Entry.Eviction.Pod), Expected: map[evictionapi.Signal]int64{}, Measured: map[evictionapi.Signal]int64{},
			After: Seconds(p.Now.Sub(settled.Entry.DecidedAt)),
		}
		for signal, gain := range settled.Entry.Gains {
			if measured, followed := settled.Measured[signal]; followed && gain > 0 {
				r.Expected[signal], r.Measured[signal] = gain, measured
			}
		}
		released = append(released, r)
	}
	return released
}

// Step takes the step of a recorded pass again, by a policy: that of the
// configuration which the record was written with, or another. The record's State
// and pods are what it starts from.
func (r *Record) Step(policy decide.Policy) (decide.State, decide.Decision, error) {
	input, err := r.Input(policy)
	if err != nil {
		return decide.State{}, decide.Decision{}, err
	}
	after, decision := decide.Step(policy, input.Before, input.Pods, input.Seen, r.Time)
	return after, decision, nil
}

// Input is what a step was given.
type Input struct {
	Before decide.State
	Pods   []*v1.Pod
	Seen   observe.Snapshot
}

// Input reads what a step was given.
func (r *Record) Input(policy decide.Policy) (Input, error) {
	clock := frame{r.Time}
	before, err := r.State.decideState(policy, clock)
	if err != nil {
		return Input{}, err
	}
	input := Input{Before: before}
	observations := r.seen
	if observations == nil {
		observations = make(observe.Observations, len(r.Observations))
	}
	clear(observations)
	for signal, o := range r.Observations {
		observations[signal] = observe.Observation{Available: o.Available, Capacity: o.Capacity, Reclaimable: o.Reclaimable, Time: clock.time(o.Age)}
	}
	var stats []statsapi.PodStats
	for i := range r.Pods {
		written := &r.Pods[i]
		pod, err := written.API()
		if err != nil {
			return Input{}, fmt.Errorf("pods[%d]: %w", i, err)
		}
		input.Pods = append(input.Pods, pod)
		if written.Stats != nil {
			stats = append(stats, written.Stats.api(written.PodRef, clock))
		}
		if written.Recalled != nil {
			old := written.Recalled.Stats.api(written.PodRef, clock)
			if input.Before.Remembered == nil {
				input.Before.Remembered = observe.Memory{}
			}
			input.Before.Remembered[pod.UID] = observe.Remembered{Stats: &old, At: clock.time(&written.Recalled.Age)}
		}
	}
	input.Seen = observe.NewSnapshot(observations, stats)
	return input, nil
}

// Decided writes a decision as a record of the same pass has it.
func (r *Record) Decided(decision decide.Decision, after decide.State, policy decide.Policy) *Decision {
	return decisionOf(decision, after, policy, frame{r.Time})
}

// Verify takes the step again and says in what the decision or the conditions
// differ from those of the record; empty when they are the same. An abridged
// record cannot be verified.
func (r *Record) Verify(policy decide.Policy) (difference string, err error) {
	after, decision, err := r.Step(policy)
	if err != nil {
		return "", err
	}
	if !slices.Equal(after.Conditions, r.Conditions) {
		return fmt.Sprintf("conditions: recorded %v, decided %v", r.Conditions, after.Conditions), nil
	}
	again := r.Decided(decision, after, policy)
	if r.Decision == nil && again == nil {
		return "", nil
	}
	recorded, err := json.Marshal(r.Decision)
	if err != nil {
		return "", err
	}
	decided, err := json.Marshal(again)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(recorded, decided) {
		return fmt.Sprintf("decision: recorded %s, decided %s", recorded, decided), nil
	}
	return "", nil
}
