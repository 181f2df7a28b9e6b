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
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/lint"
)

// runLint runs kubectl eviction lint.
func runLint(t *testing.T, in string, arguments ...string) (code int, out, errors string) {
	t.Helper()
	t.Setenv("KUBECONFIG", os.DevNull)
	var stdout, stderr bytes.Buffer
	code = Run(append([]string{"lint"}, arguments...), Streams{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stderr}})
	return code, stdout.String(), stderr.String()
}

func shape(name string) string { return filepath.Join("..", "lint", "testdata", name) }

const kubeletHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// The exit status is for scripts: 0 fine, 1 found, 2 failed.
func TestLintStatus(t *testing.T) {
	tests := []struct {
		name, in  string
		arguments []string
		want      int
		// output that must be there, on either stream.
		says string
	}{
		{"notes alone", "", []string{shape("kubeadm.yaml")}, exitFine, "0 errors, 0 warnings, 2 notes"},
		{"notes that count", "", []string{shape("kubeadm.yaml"), "--fail-on", "note"}, exitFound, "2 notes"},
		{"a warning", "", []string{shape("k3s.yaml")}, exitFound, "1 warning,"},
		{"a warning that does not count", "", []string{shape("k3s.yaml"), "--fail-on=error"}, exitFine, "1 warning,"},
		{"an error", "", []string{shape("openshift-inodes.yaml"), "--fail-on=error"}, exitFound, "openshift-inodes.yaml:8"},
		{"the standard input", kubeletHeader + "evictionHard: {memory.available: NaN%}", []string{"-"}, exitFound, `-:3`},
		{"drop-ins alone", "", []string{"--config-dir", shape("dropins/kubelet.conf.d")}, exitFound, "no file of --config"},
		{"what is not known", "", []string{shape("eks.yaml")}, exitFine, "the capacities of memory.available, nodefs.available, nodefs.inodesFree are not known"},
		{"all settings", "", []string{shape("eks.yaml"), "-o", "wide"}, exitFine, "imageGCHighThresholdPercent"},
		{"no file", "", nil, exitFailed, "name a kubelet's configuration"},
		{"a file that is not there", "", []string{"nowhere.yaml"}, exitFailed, "nowhere.yaml"},
		{"a drop-in directory that is not there", "", []string{"--config-dir", "nowhere"}, exitFailed, "nowhere"},
		{"no configuration", "hello", []string{"-"}, exitFailed, "not a KubeletConfiguration"},
		{"a wrong type", kubeletHeader + "maxPods: many", []string{"-"}, exitFailed, "-:3: maxPods"},
		{"a capacity of nonsense", "", []string{shape("eks.yaml"), "--node-capacity", "ram=1"}, exitFailed, "the names are"},
		{"a severity of nonsense", "", []string{shape("eks.yaml"), "--fail-on", "doom"}, exitFailed, "note, warning, error"},
		{"an operating system of nonsense", "", []string{shape("eks.yaml"), "--os", "plan9"}, exitFailed, "linux, windows"},
		{"an output of nonsense", "", []string{shape("eks.yaml"), "-o", "xml"}, exitFailed, "json, yaml, wide"},
		{"two ways to the capacities", "", []string{shape("eks.yaml"), "--node", "a", "--node-capacity", "memory=1Gi"}, exitFailed, "node"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errors := runLint(t, test.in, test.arguments...)
			if code != test.want || !strings.Contains(out+errors, test.says) {
				t.Errorf("status %d, want %d and %q\n%s%s", code, test.want, test.says, out, errors)
			}
		})
	}
}

func TestLintJSON(t *testing.T) {
	code, out, _ := runLint(t, "", shape("karpenter.yaml"), "--node-capacity", "memory=64Gi", "-o", "json")
	var report lint.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitFound {
		t.Fatalf("status %d, %v", code, err)
	}
	if f := report.Findings[0]; f.Name != "soft-below-hard" || f.Signal != "memory.available" || !strings.HasSuffix(f.Where, "karpenter.yaml:9") {
		t.Errorf("%+v", f)
	}
	if _, out, _ := runLint(t, "", shape("karpenter.yaml"), "-o", "yaml"); !strings.Contains(out, "name: no-pod-grace") {
		t.Errorf("as YAML:\n%s", out)
	}
}

// TestLintNode asks a node behind an API server: its capacities, and without a file
// what its kubelet runs with.
func TestLintNode(t *testing.T) {
	answers := map[string]string{
		"/api/v1/nodes/worker-1": `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "worker-1"}, "status": {
			"capacity": {"memory": "64Gi", "ephemeral-storage": "100Gi"}, "allocatable": {"memory": "60Gi"}, "nodeInfo": {"operatingSystem": "linux"}}}`,
		"/api/v1/nodes/worker-1/proxy/stats/summary": `{"node": {"fs": {"capacityBytes": 107374182400, "inodes": 6000000},
			"runtime": {"imageFs": {"capacityBytes": 214748364800, "inodes": 6000000}}}}`,
		"/api/v1/nodes/worker-1/proxy/configz": `{"kubeletconfig": {"evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
			"evictionSoft": {"memory.available": "500Mi"}, "evictionSoftGracePeriod": {"memory.available": "1m"}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	defer server.Close()

	code, out, errors := runLint(t, "", "--node", "worker-1", "--server", server.URL)
	for _, want := range []string{"soft-below-hard", "imagefs-unguarded", "unguarded", "memory.available  5%     3.2Gi   kubelet", "the node reports 60Gi"} {
		if code != exitFound || !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("status %d, and no %q:\n%s%s", code, want, out, errors)
		}
	}
	if code, out, _ := runLint(t, "", shape("kubeadm.yaml"), "--node", "worker-1", "--server", server.URL); code != exitFine || !strings.Contains(out, "6.4Gi") && !strings.Contains(out, "10Gi") {
		t.Errorf("a file for the node: status %d\n%s", code, out)
	}

	delete(answers, "/api/v1/nodes/worker-1/proxy/stats/summary")
	if code, _, errors := runLint(t, "", shape("kubeadm.yaml"), "--node", "worker-1", "--server", server.URL); code != exitFine || !strings.Contains(errors, "warning: node worker-1: its summary") {
		t.Errorf("without a summary: status %d, %s", code, errors)
	}
	delete(answers, "/api/v1/nodes/worker-1/proxy/configz")
	if code, _, errors := runLint(t, "", "--node", "worker-1", "--server", server.URL); code != exitFailed || !strings.Contains(errors, "nodes/proxy") {
		t.Errorf("without configz: status %d, %s", code, errors)
	}
	if code, _, errors := runLint(t, "", "--node", "worker-2", "--server", server.URL); code != exitFailed || !strings.Contains(errors, "node worker-2") {
		t.Errorf("no such node: status %d, %s", code, errors)
	}
}
