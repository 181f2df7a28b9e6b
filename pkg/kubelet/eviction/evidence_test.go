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

package eviction_test

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/utils/clock"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// withGates runs a test with the gates as they are by default.
func withGates(t *testing.T) {
	t.Helper()
	set := func(gates map[string]bool) {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
			t.Fatal(err)
		}
	}
	gates := simnode.GatesByDefault()
	// The machine's own probes have no part in simulated time.
	gates["EvictionPromptWake"] = false
	set(gates)
	t.Cleanup(func() { set(simnode.AllGatesOff()) })
}

// A kubelet that starts again is given the pods that it had, and has a condition
// by then; that they run is no offence (#83612, case 25).
func TestRunningPodsAreAdmitted(t *testing.T) {
	withGates(t)
	inBubble(t, func(ctx context.Context, t *testing.T) {
		k := &kubelet{pods: []*v1.Pod{}}
		k.summary = func(context.Context) (*statsapi.Summary, error) { return short(), nil }
		manager, handler := k.start(ctx, t)
		let(time.Second)
		if !manager.IsUnderMemoryPressure() {
			t.Fatal("there is no pressure")
		}
		running := pod("running")
		running.Status.Phase = v1.PodRunning
		for _, test := range []struct {
			pod   *v1.Pod
			admit bool
		}{{running, true}, {pod("new"), false}} {
			if got := simnode.Admit(ctx, handler, test.pod); got.Admit != test.admit {
				t.Errorf("%s: %+v", test.pod.Name, got)
			}
		}
	})
}

// A kill that hangs holds up neither the loop nor the kill of another pod.
func TestHungKillHoldsUpNobody(t *testing.T) {
	withGates(t)
	inBubble(t, func(ctx context.Context, t *testing.T) {
		first, second := pod("first"), pod("second")
		first.UID, second.UID = "1", "2"
		k := &kubelet{pods: []*v1.Pod{first, second}}
		const unit = 100 << 20
		k.summary = func(context.Context) (*statsapi.Summary, error) {
			return &statsapi.Summary{
				Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{AvailableBytes: number(unit), WorkingSetBytes: number(99 * unit)}},
				Pods: []statsapi.PodStats{
					{PodRef: statsapi.PodReference{UID: "1"}, Memory: &statsapi.MemoryStats{WorkingSetBytes: number(50 * unit)}},
					{PodRef: statsapi.PodReference{UID: "2"}, Memory: &statsapi.MemoryStats{WorkingSetBytes: number(40 * unit)}},
				},
			}, nil
		}
		k.kill = func(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error { <-ctx.Done(); return ctx.Err() }
		k.start(ctx, t)
		let(time.Second)
		if got := k.victims(); len(got) != 1 || got[0] != "first" {
			t.Fatalf("killed %v, want the first, which is enough", got)
		}
		// The promise is worth nothing after its grace and 30 s.
		let(time.Minute)
		if got := k.victims(); len(got) != 2 || got[1] != "second" {
			t.Errorf("killed %v, want the second too", got)
		}
	})
}

// A loop that can do nothing does not spin: without thresholds, while the layout
// of the disks is not known, and while a summary fails as a grace period ends.
func TestLoopDoesNotSpin(t *testing.T) {
	withGates(t)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{"EvictionPromptWake": true}); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(ctx context.Context, t *testing.T) {
		asked, begin := 0, time.Now()
		k := &kubelet{pods: []*v1.Pod{}}
		k.summary = func(context.Context) (*statsapi.Summary, error) {
			asked++
			if time.Since(begin) > 5*time.Second {
				return nil, errors.New("the runtime is away")
			}
			return short(), nil
		}
		thresholds, err := eviction.ParseThresholdConfig(nil, nil, map[string]string{"memory.available": "50%"}, map[string]string{"memory.available": "10s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		manager, _ := eviction.NewManager(k, eviction.Config{Thresholds: thresholds, Probe: nothing{}}, k.killPod, k, k, &record.FakeRecorder{}, &v1.ObjectReference{}, clock.RealClock{}, true)
		manager.Start(ctx, k, func() []*v1.Pod { return nil }, func(*v1.Pod) bool { return true }, 10*time.Second)
		let(time.Minute)
		if asked > 80 {
			t.Errorf("the summary was asked for %d times in a minute", asked)
		}
	})
	inBubble(t, func(ctx context.Context, t *testing.T) {
		passes := 0
		k := &kubelet{pods: []*v1.Pod{}}
		manager, _ := eviction.NewManager(k, eviction.Config{Probe: nothing{}}, k.killPod, k, k, &record.FakeRecorder{}, &v1.ObjectReference{}, clock.RealClock{}, true)
		k.summary = func(context.Context) (*statsapi.Summary, error) {
			passes++
			return nil, errors.New("not ready")
		}
		manager.Start(ctx, k, func() []*v1.Pod { return nil }, func(*v1.Pod) bool { return true }, 10*time.Second)
		let(time.Minute)
		if passes > 10 {
			t.Errorf("%d passes in a minute", passes)
		}
	})
}

// nothing is a probe that reads nothing.
type nothing struct{}

func (nothing) Signals() []evictionapi.Signal { return nil }
func (nothing) Read(evictionapi.Signal) (observe.Observation, error) {
	return observe.Observation{}, errors.New("nothing")
}
