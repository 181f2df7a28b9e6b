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

package scenarios

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// TestDocumentedMetrics lets nodes live on which every metric gets a number, and
// compares what a kubelet then serves with the table of docs/metrics.md: names, types
// and labels. The rules and the dashboard of contrib are held to that table.
func TestDocumentedMetrics(t *testing.T) {
	withOurGates(t)
	for _, story := range []string{
		// Images are reclaimed, and a pod is evicted all the same; its space comes back.
		"node for=150s dedicated-imagefs imagefs-used=78Gi unused-images=4Gi each-image=1Gi\nhard imagefs.available<10Gi\nmin-reclaim imagefs.available=5Gi\npod a layer=10Gi\n",
		// A number that cannot be true.
		"node for=30s absurd-memory=9223372036854775807 absurd-at=0s..20s\nhard memory.available<1Gi\npod a memory=1Gi\n",
	} {
		spec, err := simnode.Parse(story)
		if err != nil {
			t.Fatal(err)
		}
		simnode.LiveRecorded(t, spec)
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "kubelet_evict") {
			row := name + " " + strings.ToLower(family.GetType().String())
			for _, label := range family.GetMetric()[0].GetLabel() {
				row += " " + label.GetName()
			}
			served = append(served, row)
		}
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(kubelet_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.Join(regexp.MustCompile("[a-z_]+").FindAllString(row[3], -1), " ")
		documented = append(documented, strings.TrimSpace(row[1]+" "+row[2]+" "+labels))
	}
	slices.Sort(served)
	slices.Sort(documented)
	if !slices.Equal(served, documented) {
		t.Errorf("a kubelet serves\n%s\nand docs/metrics.md lists\n%s", strings.Join(served, "\n"), strings.Join(documented, "\n"))
	}
}
