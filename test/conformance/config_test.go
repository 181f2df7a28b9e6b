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

package conformance

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"pgregory.net/rapid"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// settings draws one map of the configuration, good and bad.
func settings(texts ...string) *rapid.Generator[map[string]string] {
	names := []string{"nonsense"}
	for signal := range evictionapi.OpForSignal {
		names = append(names, string(signal))
	}
	slices.Sort(names)
	good := rapid.MapOfN(rapid.SampledFrom(names[:9]), rapid.SampledFrom(texts[:3]), 0, 5)
	any := rapid.MapOfN(rapid.SampledFrom(names), rapid.SampledFrom(texts), 0, 3)
	return rapid.OneOf(good, good, good, any)
}

// TestParseThresholdConfig gives the same settings to both packages: they take
// and refuse the same ones, and make the same thresholds of them.
func TestParseThresholdConfig(t *testing.T) {
	values := settings("1Gi", "10%", "1.05Gi", "0%", "100%", "-0%", "-5%", "101%", "NaN%", "10%%", "1e-30%", "0", "-1", "x", "", "%")
	graces := settings("30s", "0s", "1h", "-1s", "soon", "")
	reclaims := settings("500Mi", "0", "10%", "0%", "-1", "200%", "x")
	taken, refused := 0, 0
	if err := flag.Set("rapid.checks", strconv.Itoa(*nodes)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		hard, soft := values.Draw(t, "hard"), values.Draw(t, "soft")
		grace, reclaim := graces.Draw(t, "grace"), reclaims.Draw(t, "reclaim")
		if rapid.Bool().Draw(t, "a grace for each") {
			grace = map[string]string{}
			for signal := range soft {
				grace[signal] = "45s"
			}
		}
		enforce := rapid.SampledFrom([][]string{nil, {"pods"}, {"none", "pods"}}).Draw(t, "enforce")
		theirs, theirErr := eviction.ParseThresholdConfig(enforce, hard, soft, grace, reclaim)
		mine, myErr := ours.ParseThresholdConfig(enforce, hard, soft, grace, reclaim)
		if (theirErr != nil) != (myErr != nil) {
			t.Fatalf("upstream says %v, we say %v", theirErr, myErr)
		}
		if myErr != nil {
			refused++
			return
		}
		taken++
		if a, b := written(theirs), written(mine); !slices.Equal(a, b) {
			t.Fatalf("upstream has\n%v\nwe have\n%v", a, b)
		}
		layout := rapid.SampledFrom([][2]bool{{false, false}, {true, false}, {true, true}, {false, true}}).Draw(t, "layout")
		a, aErr := eviction.UpdateContainerFsThresholds(theirs, layout[0], layout[1])
		b, bErr := ours.UpdateContainerFsThresholds(mine, layout[0], layout[1])
		if !slices.Equal(written(a), written(b)) || (aErr != nil) != (bErr != nil) {
			t.Fatalf("with containerfs upstream has\n%v, %v\nwe have\n%v, %v", written(a), aErr, written(b), bErr)
		}
	})
	report("configurations %d (%d taken, %d refused)", taken+refused, taken, refused)
}

// written writes thresholds, sorted: upstream's come in the order of a map.
func written(thresholds []evictionapi.Threshold) []string {
	var lines []string
	for _, t := range thresholds {
		line := fmt.Sprintf("%s %s %v %v %v", t.Signal, t.Operator, t.Value.Quantity, t.Value.Percentage, t.GracePeriod)
		if t.MinReclaim != nil {
			line += fmt.Sprintf(" %v %v", t.MinReclaim.Quantity, t.MinReclaim.Percentage)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
