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

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// What the summary says of pressure and swap, and what it only seems to say.
func TestPressureOfTheSummary(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	memory := func(full10 float64, total uint64) *statsapi.Summary {
		return &statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{PSI: &statsapi.PSIStats{Full: statsapi.PSIData{Total: total, Avg10: full10}}}}}
	}
	swap := func(available, used *uint64) *statsapi.Summary {
		return &statsapi.Summary{Node: statsapi.NodeStats{Swap: &statsapi.SwapStats{SwapAvailableBytes: available, SwapUsageBytes: used}}}
	}
	for _, test := range []struct {
		name    string
		summary *statsapi.Summary
		signal  evictionapi.Signal
		want    *observe.Observation
	}{
		{"some stall", memory(12.34, 5), observe.SignalMemoryPressureFull10, &observe.Observation{Available: 87_66, Capacity: 100_00}},
		{"none now, but there was", memory(0, 5), observe.SignalMemoryPressureFull10, &observe.Observation{Available: 100_00, Capacity: 100_00}},
		{"zeros where nothing was read", memory(0, 0), observe.SignalMemoryPressureFull10, nil},
		{"not a number", memory(math.NaN(), 5), observe.SignalMemoryPressureFull10, nil},
		{"more than always", memory(101, 5), observe.SignalMemoryPressureFull10, nil},
		{"negative", memory(-1, 5), observe.SignalMemoryPressureFull10, nil},
		{"swap", swap(n(3), n(1)), observe.SignalSwapAvailable, &observe.Observation{Available: 3, Capacity: 4}},
		{"swap that is full", swap(n(0), n(4)), observe.SignalSwapAvailable, &observe.Observation{Available: 0, Capacity: 4}},
		{"a node without swap", swap(n(0), n(0)), observe.SignalSwapAvailable, nil},
		{"swap of which one number is missing", swap(n(3), nil), observe.SignalSwapAvailable, nil},
	} {
		got, found := observe.FromSummary(test.summary, observe.MemorySource{}).Observations[test.signal]
		if found != (test.want != nil) || found && got != *test.want {
			t.Errorf("%s: %+v, %t", test.name, got, found)
		}
	}
}

// What can be reclaimed counts up to a tenth of the time, and where that is known.
func TestCountReclaimable(t *testing.T) {
	memory := observe.Observation{Available: 10, Capacity: 100, Reclaimable: 50}
	for _, test := range []struct {
		name  string
		stall *observe.Observation
		want  int64
	}{
		{"calm", &observe.Observation{Available: 100_00, Capacity: 100_00}, 60},
		{"a tenth", &observe.Observation{Available: 90_00, Capacity: 100_00}, 60},
		{"more", &observe.Observation{Available: 89_99, Capacity: 100_00}, 10},
		{"absurd", &observe.Observation{Available: 200_00, Capacity: 100_00}, 10},
		{"unknown", nil, 10},
	} {
		seen := observe.Observations{evictionapi.SignalMemoryAvailable: memory}
		if test.stall != nil {
			seen[observe.SignalMemoryPressureFull10] = *test.stall
		}
		seen.CountReclaimable()
		if got := seen[evictionapi.SignalMemoryAvailable].Available; got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
