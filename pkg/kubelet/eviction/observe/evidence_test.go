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

package observe_test

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

func TestPlausible(t *testing.T) {
	for _, test := range []struct {
		name string
		o    observe.Observation
		want bool
	}{
		{"some", observe.Observation{Available: 1, Capacity: 2}, true},
		{"none left", observe.Observation{Available: 0, Capacity: 2}, true},
		{"all left", observe.Observation{Available: 2, Capacity: 2}, true},
		{"no capacity (#52336)", observe.Observation{}, false},
		{"above the capacity (#66961)", observe.Observation{Available: 3, Capacity: 2}, false},
		{"underflowed (#52386)", observe.Observation{Available: -4096, Capacity: 2}, false},
		{"negative capacity (#96732)", observe.Observation{Available: -2, Capacity: -1}, false},
		{"the extremes", observe.Observation{Available: math.MinInt64, Capacity: math.MaxInt64}, false},
	} {
		if got := test.o.Plausible(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestHeld(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	pod := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "own", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}},
		{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
	}}}
	fs := func(bytes, inodes *uint64) statsapi.FsStats {
		return statsapi.FsStats{UsedBytes: bytes, InodesUsed: inodes}
	}
	root, logs := fs(n(1), n(10)), fs(n(2), nil)
	full := &statsapi.PodStats{
		Memory: &statsapi.MemoryStats{WorkingSetBytes: n(7)}, ProcessStats: &statsapi.ProcessStats{ProcessCount: n(3)},
		Containers: []statsapi.ContainerStats{{Rootfs: &root, Logs: &logs}, {}},
		VolumeStats: []statsapi.VolumeStats{
			{Name: "own", FsStats: fs(n(4), n(40))}, {Name: "host", FsStats: fs(n(8), n(80))}, {Name: "memory", FsStats: fs(n(16), n(160))},
		},
	}
	everything := observe.WritableLayers | observe.Logs | observe.OwnVolumes
	some := func(amount int64) observe.Use { return observe.Use{Amount: amount, Known: true} }
	for _, test := range []struct {
		name     string
		stats    *statsapi.PodStats
		resource v1.ResourceName
		parts    observe.Parts
		want     observe.Use
	}{
		{"memory", full, v1.ResourceMemory, 0, some(7)},
		{"processes", full, observe.ResourcePIDs, 0, some(3)},
		{"bytes, what goes with the pod", full, v1.ResourceEphemeralStorage, everything, some(7)},
		{"bytes, the host's too", full, v1.ResourceEphemeralStorage, observe.LocalVolumes, some(12)},
		{"bytes, layers alone", full, v1.ResourceEphemeralStorage, observe.WritableLayers, some(1)},
		{"inodes, those of the logs are missing", full, observe.ResourceInodes, everything, some(50)},
		{"no stats", nil, v1.ResourceMemory, 0, observe.Use{}},
		{"empty stats, memory", &statsapi.PodStats{}, v1.ResourceMemory, 0, observe.Use{}},
		{"empty stats, processes", &statsapi.PodStats{}, observe.ResourcePIDs, 0, observe.Use{}},
		{"empty stats, bytes", &statsapi.PodStats{}, v1.ResourceEphemeralStorage, everything, observe.Use{}},
		{"a working set of nothing (#110611)", &statsapi.PodStats{Memory: &statsapi.MemoryStats{WorkingSetBytes: n(0)}}, v1.ResourceMemory, 0, observe.Use{}},
		{"more memory than there is", &statsapi.PodStats{Memory: &statsapi.MemoryStats{WorkingSetBytes: n(101)}}, v1.ResourceMemory, 0, observe.Use{}},
		{"underflowed", &statsapi.PodStats{Memory: &statsapi.MemoryStats{WorkingSetBytes: n(math.MaxUint64)}}, v1.ResourceMemory, 0, observe.Use{}},
		{"no files", &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Rootfs: &statsapi.FsStats{UsedBytes: n(0)}}}}, v1.ResourceEphemeralStorage, everything, some(0)},
	} {
		if got := observe.Held(pod, test.stats, observe.Traits{Resource: test.resource}, test.parts, 100); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestSnapshotOfTheMoment: a pod's memory at the moment stands in the place of
// the summary's, which stays as it is.
func TestSnapshotOfTheMoment(t *testing.T) {
	old := uint64(5)
	summary := &statsapi.Summary{Pods: []statsapi.PodStats{
		{PodRef: statsapi.PodReference{UID: "a"}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &old, RSSBytes: &old}}, {PodRef: statsapi.PodReference{UID: "b"}},
	}}
	now := time.Unix(1000, 0)
	seen := observe.FromSummary(summary, observe.MemorySource{})
	for _, uid := range []types.UID{"a", "b", "c"} {
		seen.SetWorkingSet(uid, 9, now)
		stats := seen.PodStats(uid)
		if stats == nil || *stats.Memory.WorkingSetBytes != 9 || !stats.Memory.Time.Time.Equal(now) {
			t.Errorf("%s: %+v", uid, stats)
		}
	}
	if *summary.Pods[0].Memory.WorkingSetBytes != 5 || summary.Pods[1].Memory != nil {
		t.Error("the summary has changed")
	}
	if kept := seen.PodStats("a").Memory.RSSBytes; kept == nil || *kept != 5 {
		t.Error("what else was known of the pod is gone")
	}
}

// TestRemembered: the last stats that said something are kept for two minutes.
func TestRemembered(t *testing.T) {
	used := uint64(5)
	with := observe.FromSummary(&statsapi.Summary{Pods: []statsapi.PodStats{{PodRef: statsapi.PodReference{UID: "a"}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &used}}}}, observe.MemorySource{})
	without := observe.FromSummary(&statsapi.Summary{}, observe.MemorySource{})
	pods := []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}
	start := time.Unix(1000, 0)
	memory := observe.Memory(nil).Remember(pods, with, start)
	for _, test := range []struct {
		after time.Duration
		want  bool
	}{{time.Second, true}, {2 * time.Minute, true}, {2*time.Minute + time.Second, false}} {
		memory := memory.Remember(pods, without, start.Add(test.after))
		if got := without.Recalling(memory, nil, time.Time{}).Recalled("a") != nil; got != test.want {
			t.Errorf("after %v: recalled %v", test.after, got)
		}
	}
	if memory := memory.Remember(nil, without, start); len(memory) != 0 {
		t.Error("a pod that is gone is remembered")
	}
}
