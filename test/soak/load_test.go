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

package soak

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// hours of simulated node time; make soak asks for 10,000.
var hours = flag.Int("hours", 20, "simulated hours of nodes under random load")

var killed = regexp.MustCompile(`  kill (\S+) `)

// TestRandomLoad lets nodes live ten hours each, on which pods come, grow and
// fill disks, and whose kills are slow, fail, hang or do nothing. No critical pod
// is ever killed, none twice but those whose first kill did not take, and at the
// end nothing is left running; every record of the journal is replayed.
func TestRandomLoad(t *testing.T) {
	const lifetime = 10
	before, kills, decisions := heap(), 0, 0
	for seed := range max(1, *hours/lifetime) {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		story := load(random, lifetime)
		spec, err := simnode.Parse(story)
		if err != nil {
			t.Fatalf("%v in\n%s", err, story)
		}
		count := map[string]int{}
		trace, records := simnode.LiveRecorded(t, spec)
		replayed := simnode.Replay(records)
		for _, fault := range replayed.Faults {
			t.Fatalf("seed %d: %s:\n%s", seed, fault, story)
		}
		decisions += replayed.Decisions
		for _, line := range trace {
			if match := killed.FindStringSubmatch(line); match != nil {
				kills++
				count[match[1]]++
			}
		}
		for name, times := range count {
			if strings.HasPrefix(name, "critical") || times > 1 && !strings.HasPrefix(name, "bad") {
				t.Fatalf("seed %d: %s was killed %d times:\n%s", seed, name, times, story)
			}
		}
	}
	if kills == 0 {
		t.Error("nobody was ever killed")
	}
	if grown := heap() - before; grown > 20 {
		t.Errorf("%.1f MiB more than before", grown)
	}
	t.Logf("%d simulated hours, %d kills, %d decisions replayed", max(1, *hours/lifetime)*lifetime, kills, decisions)
}

// load writes a story. Names say what may happen to a pod: one called bad needs
// more than one kill.
func load(random *rand.Rand, hours int) string {
	var story strings.Builder
	fmt.Fprintf(&story, "node\nnode for=%dh interval=1m stats-every=10s unused-images=%dGi dead-containers=%dGi gc=%ds\n", hours, random.IntN(20), random.IntN(5), random.IntN(20))
	story.WriteString("hard memory.available<1Gi\nhard nodefs.available<10%\nhard pid.available<1000\nsoft memory.available<2Gi for 1m\nsoft nodefs.available<15% for 2m\n")
	for i := range 40 {
		kind := []string{"pod", "pod", "pod", "critical", "bad"}[random.IntN(5)]
		fmt.Fprintf(&story, "pod %s%d starts=%dm memory=%dMi+%dKi/s volume=%dMi+%dKi/s processes=%d priority=%d release=%ds cleanup=%ds", kind, i,
			random.IntN(hours*60), random.IntN(1500), random.IntN(300), random.IntN(2000), random.IntN(2000), random.IntN(200), random.IntN(3)*100, random.IntN(60), random.IntN(20))
		switch kind {
		case "critical":
			story.WriteString(" static")
		case "bad":
			story.WriteString([]string{" ignores-kills=1", " stops=3m grace=600", fmt.Sprintf(" fails-until=%dm", random.IntN(hours*60))}[random.IntN(3)])
		default:
			fmt.Fprintf(&story, " kill=%ds", random.IntN(5))
		}
		if random.IntN(8) == 0 {
			story.WriteString(" no-stats=1h..3h")
		}
		story.WriteString("\n")
	}
	return story.String()
}
