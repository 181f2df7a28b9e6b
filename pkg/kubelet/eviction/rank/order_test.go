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

package rank_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

// A row is a pod: its name, priority, request and use; a use of -1 means that
// nothing is known of it.
type row struct {
	name     string
	priority int32
	request  string
	use      int64
}

// TestOrder reads as the rules: the rows stand in the order of eviction.
func TestOrder(t *testing.T) {
	tests := []struct {
		name  string
		order rank.Order
		rows  []row
	}{
		{"memory: what is unknown, then what exceeds its request, then priority, then the excess", rank.Order{Resource: v1.ResourceMemory}, []row{
			{"unknown", 1000, "10", -1},
			{"above, unimportant", -5, "1", 2},
			{"above, by much", 0, "1", 9},
			{"above, by little", 0, "1", 3},
			{"above, important", 7, "0", 900},
			{"within, unimportant", -5, "5", 1},
			{"within, nearly above", 0, "100", 99},
			{"within, far from it", 0, "100", 1},
		}},
		{"logs: in bytes, by what lies on the filesystem", rank.Order{Resource: v1.ResourceEphemeralStorage, Parts: observe.Logs}, []row{
			{"above, by much", 0, "1", 9},
			{"above, by little", 0, "1", 3},
			{"within", 0, "10", 3},
		}},
		{"layers: nobody holds any, the request decides", rank.Order{Resource: v1.ResourceEphemeralStorage, Parts: observe.WritableLayers}, []row{
			{"small request", 0, "1", 900},
			{"large request", 0, "2", 1000},
		}},
		{"process IDs: priority, then what is unknown, then the number; requests do not matter", rank.Order{Resource: observe.ResourcePIDs}, []row{
			{"unimportant", -5, "0", 1},
			{"unknown", 0, "0", -1},
			{"many", 0, "900", 90},
			{"few", 0, "0", 9},
			{"important", 1, "0", 9000},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var pods []*v1.Pod
			var want []string
			summary := &statsapi.Summary{}
			for _, row := range test.rows {
				want = append(want, row.name)
				requests := v1.ResourceList{v1.ResourceMemory: resource.MustParse(row.request), v1.ResourceEphemeralStorage: resource.MustParse(row.request)}
				pods = append(pods, &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: row.name, UID: types.UID(row.name)},
					Spec:       v1.PodSpec{Priority: &row.priority, Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}},
				})
				if use := uint64(row.use); row.use >= 0 {
					summary.Pods = append(summary.Pods, statsapi.PodStats{
						PodRef:       statsapi.PodReference{UID: row.name},
						Memory:       &statsapi.MemoryStats{WorkingSetBytes: &use},
						ProcessStats: &statsapi.ProcessStats{ProcessCount: &use},
						Containers:   []statsapi.ContainerStats{{Logs: &statsapi.FsStats{UsedBytes: &use}}},
					})
				}
			}
			slices.Reverse(pods)
			var got []string
			for _, candidate := range test.order.Pods(pods, observe.FromSummary(summary, observe.MemorySource{}), true) {
				got = append(got, candidate.Pod.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("order:\n  got  %q\n  want %q", got, want)
			}
		})
	}
}
