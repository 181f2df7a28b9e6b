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

package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.GatesByDefault()); err != nil {
		panic(err)
	}
	metrics.Register()
	os.Exit(m.Run())
}

// TestCommands runs the sessions in testdata. "node" lets a node live and keeps its
// journal as journal.jsonl, "file NAME" writes a file, and "run" runs a command line
// in their folder and shows what it prints, on either stream, and its exit status.
// After a change, go test ./cmd/kubectl-eviction/command -rewrite writes what they
// print now; read the difference before you commit it.
func TestCommands(t *testing.T) {
	folder, err := filepath.Abs("testdata") // the sessions have folders of their own
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, folder, func(t *testing.T, path string) {
		t.Chdir(t.TempDir())
		inSimulatedTime = func(f func(*testing.T)) { f(t) }
		defer func() {
			if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.GatesByDefault()); err != nil {
				t.Error(err)
			}
		}()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "node":
				spec, err := simnode.Parse(d.Input)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				_, records := simnode.LiveRecorded(t, spec)
				write(t, "journal.jsonl", records)
				return ""
			case "file":
				write(t, d.CmdArgs[0].Key, []byte(d.Input+"\n"))
				return ""
			case "run":
				return ran(strings.Fields(d.Input))
			}
			d.Fatalf(t, "%s is neither node, file nor run", d.Cmd)
			return ""
		})
	})
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ran runs a command line and returns what it prints.
func ran(arguments []string) string {
	var out, errors bytes.Buffer
	status := Run(arguments, Streams{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors}})
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	for line := range strings.Lines(errors.String()) {
		text.WriteString("stderr: " + strings.TrimRight(line, " \n") + "\n")
	}
	if status != exitFine {
		fmt.Fprintf(&text, "exit status %d\n", status)
	}
	// Blank lines would end the expectation.
	return strings.ReplaceAll(text.String(), "\n\n", "\n")
}

// TestSettingsAreDocumented looks for each setting of a scenario in docs/simulate.md.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "simulate.md"))
	if err != nil {
		t.Fatal(err)
	}
	node, pod := simnode.Keys()
	for _, key := range append(node, pod...) {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("docs/simulate.md does not mention %s", key)
		}
	}
}
