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

func TestGrace(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	hard := evictionapi.Threshold{}
	soft := evictionapi.Threshold{GracePeriod: time.Minute}
	tests := []struct {
		name      string
		threshold evictionapi.Threshold
		maximum   int64
		own       *int64
		// upstream with all gates off, and ours with EvictionConcurrentKills.
		upstream, ours int64
	}{
		{"hard", hard, 600, n(60), 1, 1},
		{"hard, the pod's own is less", hard, 600, n(0), 1, 0},
		{"hard, none of its own", hard, 600, nil, 1, 1},
		{"soft, the pod's own is less", soft, 600, n(60), 60, 60},
		{"soft, the maximum is less", soft, 30, n(60), 30, 30},
		{"soft, none of its own", soft, 20, nil, 20, 20},
		{"soft, none of its own, a large maximum", soft, 600, nil, 600, 30},
		{"soft, no maximum", soft, 0, n(60), 0, 0},
		{"soft, a negative maximum", soft, -1, n(60), -1, 60},
		{"soft, negative both", soft, -1, n(-5), -5, 0},
	}
	for _, test := range tests {
		pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: test.own}}
		if got := decide.Grace(test.threshold, test.maximum, pod, false); got != test.upstream {
			t.Errorf("%s: %d, want %d as upstream", test.name, got, test.upstream)
		}
		if got := decide.Grace(test.threshold, test.maximum, pod, true); got != test.ours {
			t.Errorf("%s: %d, want %d", test.name, got, test.ours)
		}
	}
}

// world is what a step is given.
type world struct {
	policy decide.Policy
	pods   []*v1.Pod
	seen   observe.Snapshot
}

func optional(t *rapid.T, label string) *uint64 {
	if rapid.IntRange(0, 3).Draw(t, label+" is missing") == 0 {
		return nil
	}
	n := rapid.OneOf(rapid.Uint64Max(100), rapid.SampledFrom([]uint64{0, 1 << 63, 1<<64 - 1, 1<<64 - 4096})).Draw(t, label)
	return &n
}

func fs(t *rapid.T, label string) *statsapi.FsStats {
	if rapid.IntRange(0, 4).Draw(t, label+" missing") == 0 {
		return nil
	}
	return &statsapi.FsStats{
		AvailableBytes: optional(t, label+" available"), CapacityBytes: optional(t, label+" capacity"), UsedBytes: optional(t, label+" used"),
		InodesFree: optional(t, label+" inodes free"), Inodes: optional(t, label+" inodes"), InodesUsed: optional(t, label+" inodes used"),
	}
}

func memory(t *rapid.T, label string) *statsapi.MemoryStats {
	if rapid.IntRange(0, 4).Draw(t, label+" missing") == 0 {
		return nil
	}
	return &statsapi.MemoryStats{AvailableBytes: optional(t, label+" available"), WorkingSetBytes: optional(t, label+" working set"), UsageBytes: optional(t, label+" usage")}
}

// worlds draws small ones in which any number may be missing or absurd.
var worlds = rapid.Custom(func(t *rapid.T) world {
	w := world{policy: decide.Policy{
		LocalStorageLimits: rapid.Bool().Draw(t, "limits"), PodLevelResources: rapid.Bool().Draw(t, "pod level"),
		PressureTransitionPeriod: time.Minute, MaxPodGracePeriodSeconds: rapid.Int64Range(-1, 60).Draw(t, "max grace"),
		Layout: observe.Layout{DedicatedImageFs: rapid.Bool().Draw(t, "dedicated"), SeparateContainerFs: rapid.Bool().Draw(t, "separate"), Unsupported: rapid.IntRange(0, 9).Draw(t, "unsupported") == 0},
	}}
	for i := range rapid.IntRange(0, 4).Draw(t, "thresholds") {
		label := fmt.Sprint("threshold ", i)
		threshold := evictionapi.Threshold{
			Signal:      rapid.SampledFrom(append(observe.Signals(), "unknown")).Draw(t, label),
			Operator:    rapid.SampledFrom([]evictionapi.ThresholdOperator{evictionapi.OpLessThan, evictionapi.OpLessThan, ""}).Draw(t, label+" operator"),
			GracePeriod: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, label+" grace"),
		}
		if rapid.Bool().Draw(t, label+" is a percentage") {
			threshold.Value.Percentage = rapid.Float32Range(0, 1).Draw(t, label+" percentage")
		} else {
			threshold.Value.Quantity = resource.NewQuantity(rapid.Int64Range(0, 100).Draw(t, label+" value"), resource.BinarySI)
		}
		w.policy.Thresholds = append(w.policy.Thresholds, threshold)
	}
	maxPID, processes := rapid.Int64().Draw(t, "max pid"), rapid.Int64().Draw(t, "processes")
	summary := &statsapi.Summary{Node: statsapi.NodeStats{
		Memory: memory(t, "node"), Fs: fs(t, "nodefs"),
		Runtime:          &statsapi.RuntimeStats{ImageFs: fs(t, "imagefs"), ContainerFs: fs(t, "containerfs")},
		Rlimit:           &statsapi.RlimitStats{MaxPID: &maxPID, NumOfRunningProcesses: &processes},
		SystemContainers: []statsapi.ContainerStats{{Name: statsapi.SystemContainerPods, Memory: memory(t, "pods")}},
	}}
	for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
		label := fmt.Sprint("pod ", i)
		priority := rapid.SampledFrom([]int32{-1, 0, 2_000_000_000}).Draw(t, label+" priority")
		limit := resource.MustParse("10")
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: label, UID: types.UID(label)},
			Spec: v1.PodSpec{
				Priority:   &priority,
				Containers: []v1.Container{{Name: "a", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceEphemeralStorage: limit}}}},
				Volumes:    []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}}, {Name: "none"}},
			},
		}
		w.pods = append(w.pods, pod)
		if rapid.IntRange(0, 4).Draw(t, label+" no stats") > 0 {
			stats := statsapi.PodStats{
				PodRef: statsapi.PodReference{UID: label}, Memory: memory(t, label), EphemeralStorage: fs(t, label+" storage"),
				Containers: []statsapi.ContainerStats{{Name: "a", Rootfs: fs(t, label+" root"), Logs: fs(t, label+" logs"), Memory: memory(t, label+" a")}, {Name: "gone"}},
			}
			if volume := fs(t, label+" volume"); volume != nil {
				stats.VolumeStats = []statsapi.VolumeStats{{Name: "v", FsStats: *volume}}
			}
			summary.Pods = append(summary.Pods, stats)
		}
	}
	w.seen = observe.FromSummary(summary, observe.MemorySource{})
	return w
})

// Whatever is missing or absurd: a step does not panic, decides the same thing
// twice, leaves the state that it was given alone, and takes no critical pod.
func TestStepProperties(t *testing.T) {
	shortages := 0
	rapid.Check(t, func(t *rapid.T) {
		var state decide.State
		now := time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 4).Draw(t, "passes") {
			w := worlds.Draw(t, "world")
			before := fmt.Sprintf("%+v", state)
			next, decision := decide.Step(w.policy, state, w.pods, w.seen, now)
			again, sameDecision := decide.Step(w.policy, state, w.pods, w.seen, now)
			if !reflect.DeepEqual(next, again) || !reflect.DeepEqual(decision, sameDecision) {
				t.Fatalf("two decisions:\n%+v\n%+v", decision, sameDecision)
			}
			if after := fmt.Sprintf("%+v", state); after != before {
				t.Fatalf("the state changed from\n%s\nto\n%s", before, after)
			}
			for _, eviction := range decision.OverLimit {
				check(t, eviction)
			}
			if shortage := decision.Shortage; shortage != nil {
				shortages++
				if len(decision.OverLimit) > 0 {
					t.Error("both a shortage and pods over their limits")
				}
				if shortage.Victim != nil {
					check(t, *shortage.Victim)
				}
				if shortage.Ranked && len(shortage.Candidates) != len(w.pods) {
					t.Errorf("%d candidates of %d pods", len(shortage.Candidates), len(w.pods))
				}
			}
			decide.Resolved(w.policy, w.seen.Observations)
			state = next
			now = now.Add(10 * time.Second)
		}
	})
	if shortages == 0 {
		t.Error("no world was ever short of anything")
	}
}

func check(t *rapid.T, eviction decide.Eviction) {
	if rank.Critical(eviction.Pod) {
		t.Errorf("critical pod %s is evicted", eviction.Pod.Name)
	}
	if eviction.Message == "" || eviction.Cause == "" {
		t.Errorf("an eviction without a reason: %+v", eviction)
	}
}

// Every signal that can be met has an order and, if it is a filesystem's, a
// remedy, whatever the layout.
func TestEverySignalIsRanked(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	for _, layout := range []observe.Layout{{}, {DedicatedImageFs: true}, {SeparateContainerFs: true}, {DedicatedImageFs: true, SeparateContainerFs: true}} {
		for _, signal := range observe.Signals() {
			policy := decide.Policy{Layout: layout, Thresholds: []evictionapi.Threshold{{
				Signal: signal, Operator: evictionapi.OpLessThan, Value: evictionapi.ThresholdValue{Quantity: resource.NewQuantity(10, resource.BinarySI)},
			}}}
			seen := observe.Snapshot{Observations: observe.Observations{signal: {Available: 1, Capacity: 100}}}
			_, decision := decide.Step(policy, decide.State{}, []*v1.Pod{pod}, seen, time.Unix(1, 0))
			shortage := decision.Shortage
			if shortage == nil || !shortage.Ranked || shortage.Victim == nil {
				t.Errorf("%+v, %s: %+v", layout, signal, shortage)
				continue
			}
			traits, _ := observe.TraitsOf(signal)
			onlyLogs := layout.DedicatedImageFs && !layout.SeparateContainerFs && traits.Filesystem == observe.NodeFs
			if reclaims := len(shortage.Reclaim) > 0; reclaims != (traits.Filesystem != observe.NoFilesystem && !onlyLogs) {
				t.Errorf("%+v, %s: reclaims %v", layout, signal, shortage.Reclaim)
			}
		}
	}
}
