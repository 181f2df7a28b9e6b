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
	"fmt"
	"strings"
	"testing"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// TestManySmallPods is case 13 (#31362, #56152): 2938Mi are missing to the goal,
// and fifty pods hold 95Mi each. Thirty-one have to go, ten at a time, within
// seconds; upstream takes one a second.
func TestManySmallPods(t *testing.T) {
	var story strings.Builder
	story.WriteString("node\nnode for=20s system=11500Mi\nhard memory.available<1Gi\nmin-reclaim memory.available=2Gi\n")
	for i := range 50 {
		fmt.Fprintf(&story, "pod p%02d memory=95Mi kill=1s\n", i)
	}
	spec, err := simnode.Parse(story.String())
	if err != nil {
		t.Fatal(err)
	}
	withOurGates(t)
	kills, last := 0, ""
	for _, line := range simnode.Live(t, spec, simnode.Ours) {
		if strings.Contains(line, "  kill ") {
			kills++
			last = line
		}
	}
	if kills != 31 || !strings.HasPrefix(strings.TrimSpace(last), "3") {
		t.Errorf("%d kills, the last: %s", kills, last)
	}
}
