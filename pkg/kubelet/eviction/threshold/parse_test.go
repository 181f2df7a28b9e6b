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
	"strings"
	"testing"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name     string
		settings threshold.Settings
		// want are words that the error must have: the map, the signal, the text.
		want []string
	}{
		{"unknown signal", threshold.Settings{Hard: map[string]string{"memory.avail": "1Gi"}}, []string{"evictionHard", `"memory.avail"`, "memory.available"}},
		{"no quantity", threshold.Settings{Hard: map[string]string{"memory.available": "much"}}, []string{"evictionHard", "memory.available", `"much"`}},
		{"nothing", threshold.Settings{Hard: map[string]string{"memory.available": "0"}}, []string{"memory.available", `"0"`, "above 0"}},
		{"negative", threshold.Settings{Soft: map[string]string{"memory.available": "-1Gi"}}, []string{"evictionSoft", `"-1Gi"`, "above 0"}},
		{"too many percent", threshold.Settings{Hard: map[string]string{"nodefs.available": "101%"}}, []string{"nodefs.available", `"101%"`, "100%"}},
		{"no percentage", threshold.Settings{Hard: map[string]string{"nodefs.available": "x%"}}, []string{`"x%"`, "percentage"}},
		{"soft without grace", threshold.Settings{Soft: map[string]string{"nodefs.available": "5%"}}, []string{"evictionSoft", "nodefs.available", "evictionSoftGracePeriod"}},
		{"bad grace", threshold.Settings{SoftGracePeriod: map[string]string{"nodefs.available": "soon"}}, []string{"evictionSoftGracePeriod", `"soon"`}},
		{"negative grace", threshold.Settings{SoftGracePeriod: map[string]string{"nodefs.available": "-1s"}}, []string{`"-1s"`, "negative"}},
		{"negative reclaim", threshold.Settings{MinimumReclaim: map[string]string{"nodefs.available": "-1"}}, []string{"evictionMinimumReclaim", `"-1"`}},
		{"no percent to reclaim", threshold.Settings{MinimumReclaim: map[string]string{"nodefs.available": "0%"}}, []string{`"0%"`, "above"}},
		{"all faults at once", threshold.Settings{
			Hard: map[string]string{"memory.available": "x"}, Soft: map[string]string{"pid.available": "y"},
			SoftGracePeriod: map[string]string{"pid.available": "z"}, MinimumReclaim: map[string]string{"nope": "1"},
		}, []string{`"x"`, `"y"`, `"z"`, `"nope"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			thresholds, err := threshold.Parse(test.settings)
			if err == nil {
				t.Fatalf("no error, but %v", thresholds)
			}
			for _, word := range test.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %s", err, word)
				}
			}
			if again, err2 := threshold.Parse(test.settings); again != nil || err2.Error() != err.Error() {
				t.Errorf("the second time: %v, %q", again, err2)
			}
		})
	}
}

// The order of the result does not depend on that of a map.
func TestParseOrder(t *testing.T) {
	settings := threshold.Settings{
		Hard:             map[string]string{"pid.available": "1000", "memory.available": "1Gi", "nodefs.available": "10%", "imagefs.available": "100%"},
		Soft:             map[string]string{"memory.available": "2Gi"},
		SoftGracePeriod:  map[string]string{"memory.available": "30s"},
		GuardAllocatable: true,
	}
	want := "memory.available nodefs.available pid.available memory.available allocatableMemory.available"
	for range 20 {
		thresholds, err := threshold.Parse(settings)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range thresholds {
			got = append(got, string(one.Signal))
		}
		if strings.Join(got, " ") != want {
			t.Fatalf("got %v, want %s", got, want)
		}
	}
}

// FuzzParse gives any text to every map: no panic, and what is parsed can be
// compared with an observation.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"100Mi", "10%", "0%", "-0%", "NaN%", "10%%", "1e-30%", "1e400", "30s", "", "%", "1.05Gi", "9E", "-1"} {
		f.Add("memory.available", text)
		f.Add("nodefs.inodesFree", text)
	}
	f.Fuzz(func(t *testing.T, signal, text string) {
		one := map[string]string{signal: text}
		for _, settings := range []threshold.Settings{
			{Hard: one}, {Soft: one, SoftGracePeriod: map[string]string{signal: "1s"}},
			{Hard: map[string]string{signal: "1Gi"}, MinimumReclaim: one}, {SoftGracePeriod: one},
		} {
			thresholds, err := threshold.Parse(settings)
			if (err != nil) == (thresholds != nil) && len(thresholds) > 0 {
				t.Fatalf("both %v and %v", thresholds, err)
			}
			for _, parsed := range thresholds {
				threshold.Met(parsed, observe.Observation{Available: 1, Capacity: 2})
				threshold.Unresolved(parsed, observe.Observation{Available: 1, Capacity: 2})
				if parsed.Operator != evictionapi.OpLessThan {
					t.Errorf("operator %q", parsed.Operator)
				}
			}
		}
	})
}
