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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

func u(n uint64) *uint64 { return &n }

func TestFromSummary(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	maxPID, running := int64(100), int64(130)
	commit := observe.MemorySource{SystemContainer: statsapi.SystemContainerWindowsGlobalCommitMemory, UsedIsUsage: true}
	tests := []struct {
		name    string
		summary *statsapi.Summary
		memory  observe.MemorySource
		want    observe.Observations
	}{
		{name: "nil", summary: nil, want: nil},
		{name: "empty", summary: &statsapi.Summary{}, want: observe.Observations{}},
		{
			name: "capacity is what is available and what is used",
			summary: &statsapi.Summary{Node: statsapi.NodeStats{
				Memory: &statsapi.MemoryStats{Time: at, AvailableBytes: u(3), WorkingSetBytes: u(4)},
			}},
			want: observe.Observations{evictionapi.SignalMemoryAvailable: {Available: 3, Capacity: 7, Time: at.Time}},
		},
		{
			name: "a number is missing",
			summary: &statsapi.Summary{Node: statsapi.NodeStats{
				Memory:  &statsapi.MemoryStats{AvailableBytes: u(3)},
				Fs:      &statsapi.FsStats{CapacityBytes: u(9), InodesFree: u(1)},
				Rlimit:  &statsapi.RlimitStats{MaxPID: &maxPID},
				Runtime: &statsapi.RuntimeStats{},
			}},
			want: observe.Observations{},
		},
		{
			name: "an underflow is negative",
			summary: &statsapi.Summary{Node: statsapi.NodeStats{
				Fs:     &statsapi.FsStats{AvailableBytes: u(1<<64 - 4096), CapacityBytes: u(9)},
				Rlimit: &statsapi.RlimitStats{MaxPID: &maxPID, NumOfRunningProcesses: &running},
			}},
			want: observe.Observations{
				evictionapi.SignalNodeFsAvailable: {Available: -4096, Capacity: 9},
				evictionapi.SignalPIDAvailable:    {Available: -30, Capacity: 100},
			},
		},
		{
			name: "Windows counts the commit charge",
			summary: &statsapi.Summary{Node: statsapi.NodeStats{
				Memory: &statsapi.MemoryStats{AvailableBytes: u(1), WorkingSetBytes: u(1)},
				SystemContainers: []statsapi.ContainerStats{
					{Name: statsapi.SystemContainerWindowsGlobalCommitMemory, Memory: &statsapi.MemoryStats{AvailableBytes: u(5), UsageBytes: u(6)}},
				},
			}},
			memory: commit,
			want:   observe.Observations{evictionapi.SignalMemoryAvailable: {Available: 5, Capacity: 11}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, observe.FromSummary(test.summary, test.memory).Observations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Every signal that upstream knows has its row: a new one must be given one.
func TestEverySignalHasTraits(t *testing.T) {
	for signal := range evictionapi.OpForSignal {
		if _, known := observe.TraitsOf(signal); !known {
			t.Errorf("%s has no traits", signal)
		}
	}
	for _, signal := range observe.Signals() {
		traits, _ := observe.TraitsOf(signal)
		if operator, upstreams := evictionapi.OpForSignal[signal]; upstreams == traits.Extra || upstreams && operator != traits.Operator() {
			t.Errorf("%s: upstream has it: %t, with the operator %q; its traits are %+v", signal, upstreams, operator, traits)
		}
	}
}
