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
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"pgregory.net/rapid"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// Which signals a stricter rule is about.
const (
	everySignal = ""
	counted     = "inodesFree, pid"
)

// stricter lists the texts that upstream takes and we refuse, since they can never
// be meant; docs/feature-gates.md gives the reasons. About every other text both
// must say the same.
var stricter = []struct{ settings, signals, text string }{
	{"value", everySignal, "-0%"},
	{"value", everySignal, "NaN%"},
	{"value", everySignal, "10%%"},
	{"value", everySignal, "1e-30%"},
	{"value", everySignal, "0x1p-2%"},
	{"value", everySignal, "500m"},
	{"value", everySignal, "10E"},
	{"value", everySignal, "9Ei"},
	{"value", counted, "1Gi"},
	{"value", counted, "1.05Gi"},
	{"value", counted, "107374182400m"},
	{"value", counted, "0.5Ki"},
	{"value", counted, "1.5"},
	{"reclaim", everySignal, "-0"},
	{"reclaim", everySignal, "NaN%"},
	{"reclaim", everySignal, "Inf%"},
	{"reclaim", everySignal, "10%%"},
	{"reclaim", everySignal, "1e-30%"},
	{"reclaim", everySignal, "10E"},
	{"reclaim", counted, "500Mi"},
	{"grace", everySignal, "-0s"},
}

// refusedHere names the first entry of a map that stricter lists; "" when there is
// none. A map that upstream does not get as far as using is checked all the same.
func refusedHere(settings string, texts map[string]string) string {
	for signal, text := range texts {
		counts := strings.HasSuffix(signal, "inodesFree") || strings.HasPrefix(signal, "pid")
		for _, rule := range stricter {
			if rule.settings == settings && rule.text == text &&
				(rule.signals == everySignal || (rule.signals == counted) == counts) {
				return signal + " " + text
			}
		}
	}
	return ""
}

// texts draws one map of the configuration, good and bad. The good texts come first.
func texts(good int, texts ...string) *rapid.Generator[map[string]string] {
	names := []string{"nonsense"}
	for signal := range evictionapi.OpForSignal {
		names = append(names, string(signal))
	}
	slices.Sort(names)
	fine := rapid.MapOfN(rapid.SampledFrom(names[:9]), rapid.SampledFrom(texts[:good]), 0, 5)
	any := rapid.MapOfN(rapid.SampledFrom(names), rapid.SampledFrom(texts), 0, 3)
	return rapid.OneOf(fine, fine, fine, any)
}

// TestParseThresholdConfig gives the same settings to both packages: they take
// and refuse the same ones but for those in stricter, and make the same thresholds
// of them.
func TestParseThresholdConfig(t *testing.T) {
	values := texts(5, "10%", "10.5%", "1000", "2k", "1e6", "1Gi", "1.05Gi", "0%", "100%", "0.0%", "100.0%", "1e1%", "107374182400m", "-0%", "-5%", "101%", "NaN%", "Inf%", "10%%", "1e-30%", "0x1p-2%",
		"500m", "1.5", "0.5Ki", "10E", "9Ei", "0", "-0", "-1", "x", "", "%")
	graces := texts(3, "30s", "0s", "1h", "-1s", "-0s", "soon", "")
	reclaims := texts(4, "500", "1k", "0", "10%", "500Mi", "0%", "-0", "-1", "200%", "NaN%", "Inf%", "10%%", "1e-30%", "10E", "x")
	taken, refused, stricterHere := 0, 0, 0
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
		listed := cmp.Or(refusedHere("value", hard), refusedHere("value", soft), refusedHere("grace", grace), refusedHere("reclaim", reclaim))
		if (myErr != nil) != (theirErr != nil || listed != "") {
			t.Fatalf("upstream says %v, stricter lists %q, we say %v", theirErr, listed, myErr)
		}
		if myErr != nil {
			refused++
			if theirErr == nil {
				stricterHere++
			}
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
	report("configurations %d (%d taken, %d refused, %d of these by us alone)", taken+refused, taken, refused, stricterHere)
}

// Each entry of stricter is one: upstream takes it, and we do not.
func TestStricter(t *testing.T) {
	for _, rule := range stricter {
		for signal := range evictionapi.OpForSignal {
			maps := map[string]map[string]string{rule.settings: {string(signal): rule.text}}
			if refusedHere(rule.settings, maps[rule.settings]) == "" {
				continue
			}
			_, theirErr := eviction.ParseThresholdConfig(nil, maps["value"], nil, maps["grace"], maps["reclaim"])
			_, myErr := ours.ParseThresholdConfig(nil, maps["value"], nil, maps["grace"], maps["reclaim"])
			if theirErr != nil || myErr == nil {
				t.Errorf("%s %s %q: upstream says %v, we say %v", rule.settings, signal, rule.text, theirErr, myErr)
			}
		}
	}
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
