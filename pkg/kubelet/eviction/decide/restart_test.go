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
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// small is a node of 100 units of memory that is to keep 10, with two pods.
var small = decide.Policy{
	Thresholds: []evictionapi.Threshold{{
		Signal: evictionapi.SignalMemoryAvailable, Operator: evictionapi.OpLessThan,
		Value: evictionapi.ThresholdValue{Quantity: resource.NewQuantity(10<<20, resource.BinarySI)},
	}},
	ConcurrentKills: true, Evidence: true, TargetedReclaim: true,
}

func podNamed(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
}

// shortAt is a snapshot with 5 MiB available, a leak of 60 MiB and another pod of 20.
func shortAt(at time.Time) observe.Snapshot {
	leak, other := uint64(60<<20), uint64(20<<20)
	return observe.NewSnapshot(
		observe.Observations{evictionapi.SignalMemoryAvailable: {Available: 5 << 20, Capacity: 100 << 20, Time: at}},
		[]statsapi.PodStats{
			{PodRef: statsapi.PodReference{UID: "leak"}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &leak}},
			{PodRef: statsapi.PodReference{UID: "other"}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &other}},
		})
}

func killed(decision decide.Decision) (names []string) {
	for _, kill := range decision.Kills {
		names = append(names, kill.Eviction.Pod.Name+" "+kill.Again.String())
	}
	return names
}

// A kubelet that was away for two minutes, and knows its pods some seconds after its
// start: the victim that was in flight is killed again, once it is there, and nobody
// else goes for the same gap.
func TestRestartWithVictimInFlight(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	pods := []*v1.Pod{podNamed("leak"), podNamed("other")}
	state, decision := decide.Step(small, decide.State{}, pods, shortAt(start), start)
	if got := killed(decision); len(got) != 1 || got[0] != "leak first" {
		t.Fatalf("before the restart: %v", got)
	}
	now := start.Add(2 * time.Minute)
	state = decide.State{Standings: state.Standings, Ledger: state.Ledger.Adopt(now)}
	for second, test := range []struct {
		pods []*v1.Pod
		want string
	}{{nil, ""}, {nil, ""}, {pods, "leak retried"}, {pods, ""}, {pods, ""}} {
		at := now.Add(time.Duration(second) * time.Second)
		state, decision = decide.Step(small, state, test.pods, shortAt(at), at)
		got := ""
		for _, name := range killed(decision) {
			got += name
		}
		if got != test.want || len(decision.Uncounted) > 0 {
			t.Errorf("%d s after the restart: %q, uncounted %d, want %q", second, got, len(decision.Uncounted), test.want)
		}
		if len(decision.Kills) > 0 && decision.Kills[0].Eviction.Pod != pods[0] {
			t.Error("the pod that is killed is not the one that runs")
		}
	}
}

// A pod that does not come back within a minute is gone.
func TestRestartWithVictimGone(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	state, _ := decide.Step(small, decide.State{}, []*v1.Pod{podNamed("leak")}, shortAt(start), start)
	state = decide.State{Ledger: state.Ledger.Adopt(start)}
	late := start.Add(time.Minute)
	_, decision := decide.Step(small, state, nil, shortAt(late), late)
	if len(decision.Uncounted) != 1 || len(decision.Kills) != 0 {
		t.Errorf("%d uncounted, %v killed", len(decision.Uncounted), killed(decision))
	}
}

// What memory returned is told although the entry stays for the logs that the pod held.
func TestMeasuredOfASignalThatSettlesEarly(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	ledger := decide.Ledger{}.With(decide.Eviction{Pod: podNamed("leak")},
		decide.Gains{evictionapi.SignalMemoryAvailable: 60, evictionapi.SignalNodeFsAvailable: 4},
		observe.Observations{evictionapi.SignalMemoryAvailable: {Available: 5, Capacity: 100, Time: start}, evictionapi.SignalNodeFsAvailable: {Available: 50, Capacity: 100, Time: start}}, start)
	ledger = ledger.Killed("leak", start).CleanedUp("leak", start)
	for second := range 70 {
		at := start.Add(time.Duration(second) * time.Second)
		seen := observe.Observations{evictionapi.SignalMemoryAvailable: {Available: 65, Capacity: 100, Time: at}, evictionapi.SignalNodeFsAvailable: {Available: 54, Capacity: 100, Time: at}}
		next := ledger.Observe(seen, at)
		if settled := ledger.Settled(next, seen); len(settled) == 1 {
			if memory := settled[0].Measured[evictionapi.SignalMemoryAvailable]; memory != 60 {
				t.Errorf("memory is measured as %d, want 60", memory)
			}
			return
		}
		ledger = next
	}
	t.Error("the victim never settled")
}

// One culprit makes the node stand still; its stall is gone a second after its kill, and
// the averages fall as the kernel's do. Nobody goes after it.
func TestOneCulpritOfAPressure(t *testing.T) {
	for _, test := range []struct {
		signal evictionapi.Signal
		window float64
		from   float64
	}{{observe.SignalMemoryPressureFull10, 10, 90}, {observe.SignalMemoryPressureFull60, 60, 60}, {observe.SignalIOPressureSome60, 60, 90}} {
		policy := small
		policy.Thresholds = []evictionapi.Threshold{{Signal: test.signal, Operator: observe.OpGreaterThan, Value: evictionapi.ThresholdValue{Percentage: 0.2}}}
		pods := []*v1.Pod{podNamed("culprit"), podNamed("b"), podNamed("c")}
		start := time.Unix(1_000_000, 0)
		state, victims := decide.State{}, []string{}
		for second := range 400 {
			at := start.Add(time.Duration(second) * time.Second)
			node := test.from * math.Exp(-max(0, float64(second)-1)/test.window)
			pressure := func(percent float64) *statsapi.PSIStats {
				data := statsapi.PSIData{Total: 1, Avg10: percent, Avg60: percent}
				return &statsapi.PSIStats{Some: data, Full: data}
			}
			used := uint64(1 << 20)
			stats := func(name string, own float64) statsapi.PodStats {
				return statsapi.PodStats{PodRef: statsapi.PodReference{UID: name}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &used, PSI: pressure(own)}, IO: &statsapi.IOStats{PSI: pressure(own)}}
			}
			o := observe.StallObservation(node)
			o.Time = at
			// The others waited for the culprit, and their averages fall with the node's.
			seen := observe.NewSnapshot(observe.Observations{test.signal: o}, []statsapi.PodStats{stats("culprit", test.from), stats("b", node/2), stats("c", node/3)})
			var decision decide.Decision
			state, decision = decide.Step(policy, state, pods, seen, at)
			for _, kill := range decision.Kills {
				victims = append(victims, kill.Eviction.Pod.Name)
				state.Ledger = state.Ledger.Killed(kill.Eviction.Pod.UID, at).CleanedUp(kill.Eviction.Pod.UID, at.Add(time.Second))
				pods = pods[1:]
			}
		}
		if len(victims) != 1 || victims[0] != "culprit" {
			t.Errorf("%s: %v were evicted", test.signal, victims)
		}
	}
}
