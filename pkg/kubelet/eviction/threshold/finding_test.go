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

package threshold_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

const gi = 1 << 30

// guarded is a node on which nothing is to be found.
func guarded(change func(*threshold.Settings)) threshold.Settings {
	s := threshold.Settings{
		Hard:            map[string]string{"memory.available": "500Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"},
		Soft:            map[string]string{},
		SoftGracePeriod: map[string]string{},
		MinimumReclaim:  map[string]string{},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func soft(signal, value string) func(*threshold.Settings) {
	return func(s *threshold.Settings) { s.Soft[signal], s.SoftGracePeriod[signal] = value, "1m" }
}

func hard(signal, value string) func(*threshold.Settings) {
	return func(s *threshold.Settings) { s.Hard[signal] = value }
}

func TestFindings(t *testing.T) {
	all := map[evictionapi.Signal]int64{
		"memory.available": 64 * gi, "nodefs.available": 100 * gi, "nodefs.inodesFree": 6_000_000,
		"imagefs.available": 100 * gi, "imagefs.inodesFree": 6_000_000, "pid.available": 32768,
	}
	large := map[evictionapi.Signal]int64{"memory.available": 64 * gi, "nodefs.available": 2048 * gi, "imagefs.available": 100 * gi}
	one, own := &observe.Layout{}, &observe.Layout{DedicatedImageFs: true}
	tests := []struct {
		name     string
		settings threshold.Settings
		capacity map[evictionapi.Signal]int64
		layout   *observe.Layout
		maxGrace int64
		// want are the names with the signals, and a part of the problem.
		want []string
	}{
		{"nothing to find", guarded(nil), all, one, 0, nil},
		{"nothing known of the node", guarded(nil), nil, nil, 0, nil},
		{"soft below hard: a percentage and an amount (case 32)", guarded(func(s *threshold.Settings) { hard("memory.available", "5%")(s); soft("memory.available", "500Mi")(s) }), all, one, 60,
			[]string{"soft-below-hard memory.available: soft memory.available<500Mi for 1m0s lies at or below hard memory.available<5% (3.2Gi) of 64Gi"}},
		{"the same without the capacity", guarded(func(s *threshold.Settings) { hard("memory.available", "5%")(s); soft("memory.available", "500Mi")(s) }), nil, one, 60, nil},
		{"soft below hard: two percentages", guarded(soft("nodefs.available", "10%")), nil, nil, 60, []string{"soft-below-hard nodefs.available"}},
		{"soft below hard: two amounts", guarded(soft("memory.available", "100Mi")), nil, nil, 60, []string{"soft-below-hard memory.available"}},
		{"soft above hard", guarded(soft("memory.available", "10%")), all, one, 60, nil},
		{"soft thresholds whose pods get no grace", guarded(soft("memory.available", "1Gi")), all, one, 0, []string{"no-pod-grace"}},
		{"more memory than there is", guarded(hard("memory.available", "64Gi")), all, one, 0, []string{"always-met memory.available: hard memory.available<64Gi is met whatever is available: the capacity is 64Gi"}},
		{"100.0% is not 100%", guarded(hard("memory.available", "100.0%")), nil, nil, 0, []string{"always-met memory.available"}},
		{"0.0% is never met", guarded(hard("memory.available", "0.0%")), nil, nil, 0, []string{"never-met memory.available"}},
		{"less than one inode", guarded(hard("nodefs.inodesFree", "0.00001%")), all, one, 0, []string{"never-met nodefs.inodesFree"}},
		{"memory alone (case 34)", threshold.Settings{Hard: map[string]string{"memory.available": "500Mi"}}, all, one, 0, []string{"unguarded nodefs.available", "unguarded nodefs.inodesFree"}},
		{"disks alone", guarded(func(s *threshold.Settings) { delete(s.Hard, "memory.available") }), all, one, 0, []string{"unguarded memory.available"}},
		{"a soft threshold guards too", guarded(func(s *threshold.Settings) {
			delete(s.Hard, "memory.available")
			soft("memory.available", "1Gi")(s)
		}), all, one, 60, nil},
		{"imagefs guards the one disk", guarded(func(s *threshold.Settings) { delete(s.Hard, "nodefs.available"); delete(s.Hard, "nodefs.inodesFree") }), all, one, 0, nil},
		{"but not another disk", guarded(func(s *threshold.Settings) { delete(s.Hard, "nodefs.available") }), all, own, 0, []string{"unguarded nodefs.available"}},
		{"no threshold for a separate imagefs (case 34)", guarded(func(s *threshold.Settings) { delete(s.Hard, "imagefs.available"); delete(s.Hard, "imagefs.inodesFree") }), all, own, 0,
			[]string{"imagefs-unguarded imagefs.available", "imagefs-unguarded imagefs.inodesFree"}},
		{"the default on a machine of 128Gi", guarded(hard("memory.available", "100Mi")), map[evictionapi.Signal]int64{"memory.available": 128 * gi}, one, 0,
			[]string{"below-low-watermark memory.available: hard memory.available<100Mi is below the kernel's low watermark, about 176.3Mi on a machine of 128Gi"}},
		{"the default on a machine of 16Gi", guarded(hard("memory.available", "100Mi")), map[evictionapi.Signal]int64{"memory.available": 16 * gi}, one, 0, nil},
		{"a tenth of 2Ti", guarded(nil), large, own, 0, []string{"large-disk-percentage nodefs.available: hard nodefs.available<10% (204.8Gi) evicts while 204.8Gi are free"}},
		{"more to reclaim than there is", guarded(func(s *threshold.Settings) { s.MinimumReclaim["nodefs.available"] = "95Gi" }), all, one, 0, []string{"unreachable-goal nodefs.available"}},
		{"containerfs", guarded(hard("containerfs.available", "5%")), all, one, 0, []string{"containerfs-overridden containerfs.available"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.settings.GuardAllocatable = true
			thresholds, err := threshold.Parse(test.settings)
			if err != nil {
				t.Fatal(err)
			}
			findings := threshold.Findings(threshold.Subject{Thresholds: thresholds, Capacity: test.capacity, Layout: test.layout, MaxPodGracePeriodSeconds: test.maxGrace})
			var got []string
			for _, finding := range findings {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", finding.Name, finding.Signal))+": "+finding.Problem)
				if finding.Fix == "" || finding.Reason == "" || finding.Severity == "" || len(finding.Reports) == 0 {
					t.Errorf("%s has no fix, reason, severity or report", finding.Name)
				}
			}
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("found\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	thresholds, err := threshold.Parse(threshold.Settings{
		Hard: map[string]string{"memory.available": "5%", "memory.pressure.full.avg10": "20%"}, Soft: map[string]string{"nodefs.inodesFree": "10%"},
		SoftGracePeriod: map[string]string{"nodefs.inodesFree": "30s"}, MinimumReclaim: map[string]string{"nodefs.inodesFree": "1k"}, PressureSignals: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range thresholds {
		got = append(got, threshold.Describe(one, 1000*gi, true))
	}
	want := []string{"hard memory.available<5% (50Gi)", "hard memory.pressure.full.avg10>20%", "soft nodefs.inodesFree<10% (107374184000) for 30s, reclaim 1k"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The estimate is checked against what the kernel's formula gives for machines of
// these sizes: min_free_kbytes 16384 for 16 GiB, 45 MiB for 128 GiB, and its bounds.
func TestLowWatermark(t *testing.T) {
	for memory, want := range map[int64]int64{
		16 * gi:   16<<20 + 16*gi/1000,
		128 * gi:  46340<<10 + 128*gi/1000,
		8192 * gi: 256<<20 + 8192*gi/1000,
		512:       128<<10 + 32<<10,
	} {
		if got := threshold.LowWatermark(memory); got != want {
			t.Errorf("%d: %d, want %d", memory, got, want)
		}
	}
}

// FuzzFindings: whatever is parsed can be looked through, on any node.
func FuzzFindings(f *testing.F) {
	f.Add("5%", "500Mi", "10%", int64(64*gi))
	f.Add("100.0%", "0.0%", "200%", int64(0))
	f.Fuzz(func(t *testing.T, hardText, softText, reclaim string, capacity int64) {
		for _, signal := range observe.Signals() {
			name := string(signal)
			thresholds, err := threshold.Parse(threshold.Settings{
				Hard: map[string]string{name: hardText}, Soft: map[string]string{name: softText},
				SoftGracePeriod: map[string]string{name: "1m"}, MinimumReclaim: map[string]string{name: reclaim}, GuardAllocatable: true,
			})
			if err != nil {
				continue
			}
			for _, layout := range []*observe.Layout{nil, {}, {DedicatedImageFs: true}} {
				for _, finding := range threshold.Findings(threshold.Subject{Thresholds: thresholds, Capacity: map[evictionapi.Signal]int64{signal: capacity}, Layout: layout}) {
					if finding.Name == "" || finding.Problem == "" || finding.Fix == "" {
						t.Errorf("%+v", finding)
					}
				}
			}
		}
	})
}
