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
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// differing are upstream's tests that fail here on purpose, with the only case of
// theirs that may: what ours refuses and upstream's own table has as an example.
var differing = map[string]string{
	// 150Mi inodes: a unit of bytes for a count (case 31).
	"TestParseThresholdConfig": "test: inode eviction values,",
}

// TestUpstreamUnitTests runs upstream's own unit tests, unmodified and straight
// from the module cache, in the name space of our package. The shim in testdata
// joins them and offers the unexported names they use. A test that a later
// version adds is run without a change here, as long as it uses no new name.
func TestUpstreamUnitTests(t *testing.T) {
	theirs := filepath.Join(goList(t, "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"), "pkg", "kubelet", "eviction")
	mine := goList(t, "-f", "{{.Dir}}", ourPath)
	shims, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}

	replace := map[string]string{}
	// Those for other versions of Kubernetes are left out by their build
	// constraints.
	for _, shim := range glob(t, shims) {
		replace[filepath.Join(mine, "zz_"+filepath.Base(shim))] = shim
	}
	for _, own := range glob(t, mine) {
		// Our own tests stay out: an empty path means that there is no such file.
		replace[own] = ""
	}
	expected := map[string]bool{}
	for _, file := range glob(t, theirs) {
		replace[filepath.Join(mine, filepath.Base(file))] = file
		for _, name := range testsOf(t, file) {
			expected[name] = true
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}

	args := append([]string{"test", "-json", "-vet=off", "-count=1", "-overlay", overlayFile}, raceFlags...)
	output, err := exec.Command("go", append(args, ourPath)...).CombinedOutput()
	outcomes := outcomesOf(output)
	passed, skipped := 0, 0
	for name := range expected {
		only, mayDiffer := differing[name]
		switch {
		case mayDiffer:
			// Both its complaints, of the error and of the thresholds, and no other.
			if complaints := complaintsOf(output, name); outcomes[name] != "fail" || len(complaints) != 2 ||
				!strings.Contains(complaints[0], only) || !strings.Contains(complaints[1], only) {
				t.Errorf("%s: %q, %q", name, outcomes[name], complaints)
			}
		case outcomes[name] == "pass":
			passed++
		case outcomes[name] == "skip":
			skipped++
		default:
			t.Errorf("%s: %q", name, outcomes[name])
		}
	}
	if err == nil || t.Failed() {
		t.Errorf("%v\n%s", err, plain(output))
	}
	report("upstream's unit tests %d/%d, %d skipped, %d differing in a case that is refused on purpose", passed, len(expected), skipped, len(differing))
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.TrimSpace(string(output))
}

func glob(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// testsOf returns the names of the top-level tests in a file.
func testsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") && function.Name.Name != "TestMain" {
			names = append(names, function.Name.Name)
		}
	}
	return names
}

type testEvent struct{ Action, Test, Output string }

// events reads the lines of go test -json; what is no event is a complaint of
// the compiler.
func events(output []byte) []testEvent {
	var all []testEvent
	for _, line := range bytes.Split(output, []byte("\n")) {
		var event testEvent
		if json.Unmarshal(line, &event) != nil {
			event = testEvent{Output: string(line) + "\n"}
		}
		all = append(all, event)
	}
	return all
}

func outcomesOf(output []byte) map[string]string {
	outcomes := map[string]string{}
	for _, event := range events(output) {
		switch event.Action {
		case "pass", "fail", "skip":
			outcomes[event.Test] = event.Action
		}
	}
	return outcomes
}

// complaintsOf returns the lines that a test wrote with its place in a file.
func complaintsOf(output []byte, test string) []string {
	var lines []string
	for _, event := range events(output) {
		if event.Action == "output" && event.Test == test && strings.Contains(event.Output, "_test.go:") {
			lines = append(lines, event.Output)
		}
	}
	return lines
}

func plain(output []byte) string {
	var b strings.Builder
	for _, event := range events(output) {
		b.WriteString(event.Output)
	}
	return b.String()
}
