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

package decide_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

// ours is the policy with this project's gates on.
func ours(policy decide.Policy) decide.Policy {
	policy.ConcurrentKills, policy.Evidence, policy.TargetedReclaim = true, true, true
	return policy
}

// Whatever is missing or absurd, and whatever came of the kills before: no victim
// is critical, in flight already or without a gain, no more kills run than may,
// the same arguments give the same decision, and nothing that was given changes.
func TestReliefProperties(t *testing.T) {
	kills := 0
	rapid.Check(t, func(t *rapid.T) {
		var state decide.State
		now := time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 6).Draw(t, "passes") {
			w := worlds.Draw(t, "world")
			policy := ours(w.policy)
			before, seenBefore := fmt.Sprintf("%+v", state), fmt.Sprintf("%+v", w.seen.Observations)
			next, decision := decide.Step(policy, state, w.pods, w.seen, now)
			again, sameDecision := decide.Step(policy, state, w.pods, w.seen, now)
			if !reflect.DeepEqual(next, again) || !reflect.DeepEqual(decision, sameDecision) {
				t.Fatalf("two decisions:\n%+v\n%+v", decision, sameDecision)
			}
			if fmt.Sprintf("%+v", state) != before || fmt.Sprintf("%+v", w.seen.Observations) != seenBefore {
				t.Fatal("what the step was given has changed")
			}
			kills += len(decision.Kills)
			checkKills(t, state, decision)
			for i := range decision.Shortages {
				checkVictims(t, &decision.Shortages[i])
			}
			state = outcomes(t, next, now)
			now = now.Add(rapid.SampledFrom([]time.Duration{20 * time.Millisecond, 10 * time.Second, time.Minute}).Draw(t, "later"))
		}
	})
	if kills == 0 {
		t.Error("no world ever had a victim")
	}
}

func checkKills(t *rapid.T, before decide.State, decision decide.Decision) {
	if n := len(decision.Kills); n > decide.MaxKills {
		t.Errorf("%d kills are started at once", n)
	}
	var first []types.UID
	for _, kill := range decision.Kills {
		uid := kill.Eviction.Pod.UID
		// A pod that has been cleaned up may come back, as a static pod does.
		entry, found := before.Ledger.Of(uid)
		inFlight := found && entry.CleanedUpAt.IsZero()
		if found && !inFlight {
			continue
		}
		if inFlight == (kill.Again == decide.NotAgain) || rank.Critical(kill.Eviction.Pod) {
			t.Errorf("%s is killed (%s), in flight before: %v", kill.Eviction.Pod.Name, kill.Again, inFlight)
		}
		if kill.Again == decide.NotAgain {
			if slices.Contains(first, uid) {
				t.Errorf("%s is killed twice in a pass", kill.Eviction.Pod.Name)
			}
			first = append(first, uid)
		}
	}
}

func checkVictims(t *rapid.T, shortage *decide.Shortage) {
	signal := shortage.Threshold.Signal
	sum, unknown := int64(0), 0
	for i := range shortage.Victims {
		gain, known := shortage.Gains[i][signal]
		if known && gain <= 0 {
			t.Errorf("%s has nothing of %s to give", shortage.Victims[i].Pod.Name, signal)
		}
		if !known {
			unknown++
		}
		sum += gain
	}
	traits, _ := observe.TraitsOf(signal)
	if unknown > 0 && (len(shortage.Victims) > 1 || traits.Filesystem != observe.NoFilesystem) {
		t.Errorf("%d of %d victims for %s of whom nothing is known", unknown, len(shortage.Victims), signal)
	}
	for i := range shortage.Victims {
		if gain := shortage.Gains[i][signal]; unknown == 0 && sum-gain >= shortage.Wanted {
			t.Errorf("%s need not have gone for %s: %d of %d would have done without its %d", shortage.Victims[i].Pod.Name, signal, sum-gain, shortage.Wanted, gain)
		}
	}
}

// outcomes lets some of the kills in flight succeed, fail or be cleaned up.
func outcomes(t *rapid.T, state decide.State, now time.Time) decide.State {
	for _, entry := range state.Ledger.Entries {
		uid := entry.Eviction.Pod.UID
		if entry.Running == 0 {
			continue
		}
		switch rapid.IntRange(0, 3).Draw(t, "outcome") {
		case 0:
			state.Ledger = state.Ledger.Killed(uid, now)
		case 1:
			state.Ledger = state.Ledger.Failed(uid, now)
		case 2:
			state.Ledger = state.Ledger.Killed(uid, now).CleanedUp(uid, now)
		}
	}
	for filesystem := range state.Reclaims {
		if rapid.Bool().Draw(t, "reclaim ends") {
			state.Reclaims = state.Reclaims.Ended(filesystem, rapid.SampledFrom([]int64{0, 5, 1 << 40}).Draw(t, "claimed"), now)
		}
	}
	return state
}

// node is one of 100 bytes of memory in which the tests below think.
type node struct {
	available int64
	pods      []*v1.Pod
	uses      map[string]uint64
}

func (n *node) pod(name string, use uint64) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}
	n.pods = append(n.pods, pod)
	if n.uses == nil {
		n.uses = map[string]uint64{}
	}
	n.uses[name] = use
	return pod
}

const unit = 1 << 30 // above every floor

func (n *node) seen(at time.Time) observe.Snapshot {
	available, used := uint64(n.available*unit), uint64((100-n.available)*unit)
	summary := &statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{Time: metav1.NewTime(at), AvailableBytes: &available, WorkingSetBytes: &used}}}
	for name, use := range n.uses {
		use *= unit
		summary.Pods = append(summary.Pods, statsapi.PodStats{PodRef: statsapi.PodReference{UID: name}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &use}})
	}
	return observe.FromSummary(summary, observe.MemorySource{})
}

var hardMemory = evictionapi.Threshold{
	Signal: evictionapi.SignalMemoryAvailable, Operator: evictionapi.OpLessThan,
	Value: evictionapi.ThresholdValue{Quantity: resource.NewQuantity(10*unit, resource.BinarySI)},
}

func names(kills []decide.Kill) []string {
	var all []string
	for _, kill := range kills {
		all = append(all, kill.Eviction.Pod.Name)
	}
	return all
}

// TestLedger follows one victim's promise: it counts until the stats show it, for
// as long as it can be believed.
func TestLedger(t *testing.T) {
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{hardMemory}})
	n := &node{available: 5}
	n.pod("big", 20)
	n.pod("other", 10)
	start := time.Unix(1_000_000, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	state := decide.State{}
	step := func(seconds float64, want ...string) {
		t.Helper()
		var decision decide.Decision
		state, decision = decide.Step(policy, state, n.pods, n.seen(at(seconds)), at(seconds))
		if got := names(decision.Kills); !slices.Equal(got, want) {
			t.Errorf("at %g s: killed %v, want %v", seconds, got, want)
		}
	}
	step(0, "big")
	step(0.1) // pending
	state.Ledger = state.Ledger.Killed("big", at(1))
	step(1.5) // killed, and not seen in the stats yet
	n.available = 12
	step(2) // part of it has come back
	n.available = 1
	step(2.1) // what another pod took meanwhile is made up for by what is yet to come
	state.Ledger = state.Ledger.CleanedUp("big", at(3))
	n.pods = n.pods[1:]
	step(4)            // not settled
	step(5.1, "other") // no more will come
}

// TestPromiseNeverKept: a kill that hangs holds nobody up for long.
func TestPromiseNeverKept(t *testing.T) {
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{hardMemory}})
	n := &node{available: 5}
	n.pod("hung", 20)
	n.pod("other", 10)
	start := time.Unix(1_000_000, 0)
	state := decide.State{}
	for second := range 60 {
		now := start.Add(time.Duration(second) * time.Second)
		var decision decide.Decision
		state, decision = decide.Step(policy, state, n.pods, n.seen(now), now)
		if slices.Contains(names(decision.Kills), "other") {
			if second < 30 || second > 33 {
				t.Errorf("the other pod went after %d s", second)
			}
			return
		}
	}
	t.Error("a promise that is never kept has held up the eviction for a minute")
}

// TestRetryAfterSuccess: a kill that took, of a pod that runs on, is tried until
// it does, though a later try fails (#81383).
func TestRetryAfterSuccess(t *testing.T) {
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{hardMemory}})
	n := &node{available: 5}
	n.pod("lost", 20)
	start := time.Unix(1_000_000, 0)
	state, kills := decide.State{}, 0
	for second := range 600 {
		now := start.Add(time.Duration(second) * time.Second)
		var decision decide.Decision
		state, decision = decide.Step(policy, state, n.pods, n.seen(now), now)
		for range decision.Kills {
			if kills++; kills == 1 {
				state.Ledger = state.Ledger.Killed("lost", now)
			} else {
				state.Ledger = state.Ledger.Failed("lost", now)
			}
		}
	}
	if kills < 5 || kills > 12 {
		t.Errorf("killed %d times in ten minutes", kills)
	}
}

// TestKillsGivenUpAreCounted: a kill that was given up as too slow may have ended
// its pod all the same.
func TestKillsGivenUpAreCounted(t *testing.T) {
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{hardMemory}})
	n := &node{available: 5}
	n.pod("slow", 20)
	now := time.Unix(1_000_000, 0)
	state, _ := decide.Step(policy, decide.State{}, n.pods, n.seen(now), now)
	state.Ledger = state.Ledger.Failed("slow", now.Add(10*time.Second))
	n.pods, n.available = nil, 25
	at := now.Add(12 * time.Second)
	next, decision := decide.Step(policy, state, n.pods, n.seen(at), at)
	if len(decision.Uncounted) != 1 {
		t.Errorf("%d evictions to be counted, want 1", len(decision.Uncounted))
	}
	if _, again := decide.Step(policy, next, n.pods, n.seen(at), at.Add(time.Second)); len(again.Uncounted) != 0 {
		t.Error("counted twice")
	}
}

// TestUnknownGoOneByOne: of pods of which nothing is known the next goes only when
// the end of the one before has been seen, or is not believed in any more.
func TestUnknownGoOneByOne(t *testing.T) {
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{hardMemory}})
	n := &node{available: 5}
	for _, name := range []string{"a", "b", "c"} {
		n.pod(name, 0) // nothing, for a pod that runs, is unknown
	}
	start := time.Unix(1_000_000, 0)
	state, at := decide.State{}, []int{}
	for second := range 70 {
		now := start.Add(time.Duration(second) * time.Second)
		var decision decide.Decision
		state, decision = decide.Step(policy, state, n.pods, n.seen(now), now)
		for range decision.Kills {
			at = append(at, second)
		}
	}
	if len(at) != 3 || at[0] != 0 || at[1] < 30 || at[2] < 60 {
		t.Errorf("killed at %v", at)
	}
}

// TestHungKillsHoldNoSlot: eleven pods have to go, and the kills of the first ten
// hang for ever.
func TestHungKillsHoldNoSlot(t *testing.T) {
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{hardMemory}})
	n := &node{available: 0}
	for i := range 20 {
		n.pod(fmt.Sprintf("pod-%02d", i), 1)
	}
	start := time.Unix(1_000_000, 0)
	state, started := decide.State{}, map[int]int{}
	for second := range 60 {
		now := start.Add(time.Duration(second) * time.Second)
		var decision decide.Decision
		state, decision = decide.Step(policy, state, n.pods, n.seen(now), now)
		started[second] = len(decision.Kills)
	}
	if started[0] != decide.MaxKills || started[1] != 0 || started[32] != 10 {
		t.Errorf("kills by second: %v", started)
	}
}

// TestHastened: the grace of a soft threshold's victim is cut before anybody else
// is chosen, and once.
func TestHastened(t *testing.T) {
	soft := hardMemory
	soft.GracePeriod = time.Second
	soft.Value.Quantity = resource.NewQuantity(30*unit, resource.BinarySI)
	policy := ours(decide.Policy{Thresholds: []evictionapi.Threshold{soft, hardMemory}, MaxPodGracePeriodSeconds: 600})
	n := &node{available: 20}
	grace := int64(600)
	n.pod("slow", 25).Spec.TerminationGracePeriodSeconds = &grace
	n.pod("other", 10)
	start := time.Unix(1_000_000, 0)
	state := decide.State{}
	step := func(second int) decide.Decision {
		now := start.Add(time.Duration(second) * time.Second)
		var decision decide.Decision
		state, decision = decide.Step(policy, state, n.pods, n.seen(now), now)
		return decision
	}
	step(0)
	if got := step(1).Kills; len(got) != 1 || got[0].Eviction.Pod.Name != "slow" || got[0].Eviction.GracePeriodSeconds != 600 {
		t.Fatalf("for the soft threshold: %+v", got)
	}
	n.available = 5
	if got := step(5).Kills; len(got) != 1 || got[0].Again != decide.Hastened || got[0].Eviction.GracePeriodSeconds != 1 || got[0].Eviction.Pod.Name != "slow" {
		t.Fatalf("for the hard threshold: %+v", got)
	}
	if got := step(6).Kills; len(got) != 0 {
		t.Errorf("and again: %+v", got)
	}
}
