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
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// culprits are stories in which one pod is to blame, named culprit, and which
// every combination of the gates must end in the same way.
var culprits = map[string]string{
	"leak": `node
node for=60s
hard memory.available<1Gi
pod steady memory=2Gi memory-request=3Gi
pod culprit memory=8Gi+200Mi/s
`,
	"disk": `node
node for=90s
hard nodefs.available<10%
pod steady volume=5Gi
pod culprit volume=60Gi+500Mi/s
`,
	"inodes": `node
node for=60s
hard nodefs.inodesFree<10%
pod steady volume-inodes=1000
pod culprit volume-inodes=800000+5000/s
`,
	"bomb": `node
node for=60s processes=200
hard pid.available<1000
pod steady processes=50
pod culprit processes=30000+100/s
`,
	"soft": `node
node for=60s max-grace=5
soft memory.available<2Gi for 10s
pod steady memory=2Gi memory-request=3Gi
pod culprit memory=12500Mi grace=30
`,
	"limit": `node
node for=30s
pod steady volume=1Gi volume-limit=2Gi
pod culprit volume=1Gi+100Mi/s volume-limit=2Gi
`,
}

var killedPod = regexp.MustCompile(`  kill (\S+) `)

// TestEveryCombinationOfGates runs the culprits with each of the gates that have
// an effect on and off, in every combination, and replays what was recorded.
func TestEveryCombinationOfGates(t *testing.T) {
	withOurGates(t)
	gates := []string{"EvictionPromptWake", "EvictionConcurrentKills", "EvictionEvidence", "EvictionTargetedReclaim", "EvictionJournal"}
	for combination := range 1 << len(gates) {
		set, on := simnode.AllGatesOff(), []string{}
		for i, gate := range gates {
			if set[gate] = combination&(1<<i) != 0; set[gate] {
				on = append(on, strings.TrimPrefix(gate, "Eviction"))
			}
		}
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(set); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(culprits)) {
			t.Run(fmt.Sprintf("%s/%s", strings.Join(on, "+"), name), func(t *testing.T) {
				spec, err := simnode.Parse(culprits[name])
				if err != nil {
					t.Fatal(err)
				}
				trace, records := simnode.LiveRecorded(t, spec)
				if replayed := simnode.Replay(records); len(replayed.Faults) > 0 || (replayed.Decisions > 0) != set["EvictionJournal"] {
					t.Errorf("%d decisions replayed: %v", replayed.Decisions, replayed.Faults)
				}
				var victims []string
				for _, line := range trace {
					if match := killedPod.FindStringSubmatch(line); match != nil {
						victims = append(victims, match[1])
					}
				}
				if !slices.Equal(victims, []string{"culprit"}) {
					t.Errorf("killed %v:\n%s", victims, strings.Join(trace, "\n"))
				}
			})
		}
	}
}
