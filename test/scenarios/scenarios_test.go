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

// Package scenarios runs the stories in testdata. A story gives a node and what
// grows on it, and then everything that happens: what the manager does to the
// pods, the images and the events, which conditions the node has, and whom it
// refuses.
//
// Those in testdata/upstream tell upstream's rules. Each is run through the
// whole manager in simulated time, through the pure step alone, and through
// upstream's manager, with all gates off. Those in testdata/ours tell this
// project's own, and are run with the gates as they are by default; they name
// the reports that they come from.
//
// After a change, go test ./test/scenarios -rewrite writes what happens now;
// read the difference before you commit it.
package scenarios

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.AllGatesOff()); err != nil {
		panic(err)
	}
	metrics.Register()
	os.Exit(m.Run())
}

// stories runs every story of a folder; live gets the node and what the story expects.
func stories(t *testing.T, folder string, live func(t *testing.T, spec simnode.Spec, expected string) string) {
	datadriven.Walk(t, folder, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			spec, err := simnode.Parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return live(t, spec, d.Expected)
		})
	})
}

func text(lines []string) string {
	if len(lines) == 0 {
		return "nothing happens\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestManager(t *testing.T) {
	stories(t, "testdata/upstream", func(t *testing.T, spec simnode.Spec, _ string) string {
		return text(simnode.Live(t, spec, simnode.Ours))
	})
}

func TestUpstream(t *testing.T) {
	stories(t, "testdata/upstream", func(t *testing.T, spec simnode.Spec, _ string) string {
		return text(simnode.Live(t, spec, simnode.Upstream))
	})
}

// TestStep compares what the pure step can know: it admits and refuses nobody.
func TestStep(t *testing.T) {
	stories(t, "testdata/upstream", func(t *testing.T, spec simnode.Spec, expected string) string {
		lines, err := simnode.LiveByStep(spec)
		if err != nil {
			return err.Error()
		}
		if actual := text(lines); actual != withoutRefusals(expected) {
			return actual
		}
		return expected
	})
}

// withoutRefusals drops whom the node refuses, and lines that say nothing else.
func withoutRefusals(trace string) string {
	var lines []string
	conditions := ""
	for _, line := range strings.Split(trace, "\n") {
		line, _, _ = strings.Cut(line, "; refuses ")
		if _, now, found := strings.Cut(line, "conditions: "); found {
			if now == conditions {
				continue
			}
			conditions = now
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// withOurGates sets the gates as they are by default, for a test.
func withOurGates(t *testing.T) {
	t.Helper()
	set := func(gates map[string]bool) {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
			t.Fatal(err)
		}
	}
	set(simnode.GatesByDefault())
	t.Cleanup(func() { set(simnode.AllGatesOff()) })
}

// TestPressure tells the rules of the two gates that are off by default, with both of
// them on.
func TestPressure(t *testing.T) {
	withOurGates(t)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{"EvictionPressureSignals": true, "EvictionReclaimableMemory": true}); err != nil {
		t.Fatal(err)
	}
	stories(t, "testdata/pressure", func(t *testing.T, spec simnode.Spec, _ string) string {
		trace, records := simnode.LiveRecorded(t, spec)
		for _, fault := range simnode.Replay(records).Faults {
			t.Error(fault)
		}
		return text(trace)
	})
}

func TestOurs(t *testing.T) {
	withOurGates(t)
	stories(t, "testdata/ours", func(t *testing.T, spec simnode.Spec, _ string) string {
		return text(simnode.Live(t, spec, simnode.Ours))
	})
}
