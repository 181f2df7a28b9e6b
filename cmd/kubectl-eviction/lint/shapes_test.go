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

package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/lint"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// The nodes that the shapes are looked at for.
const (
	unknown  = ""
	usual    = "memory=16Gi,nodefs=100Gi,nodefs.inodes=6M,pid=32768"
	twoDisks = "memory=128Gi,nodefs=100Gi,imagefs=2Ti"
)

// TestShapes goes through what distributions and clouds write, by their documents: the
// files say which. What is found is written as "severity name signal".
func TestShapes(t *testing.T) {
	tests := []struct {
		file, capacity string
		want           []string
	}{
		{"kubeadm.yaml", unknown, []string{"note transition-period-zero", "note image-gc-late imagefs.available"}},
		{"kubeadm.yaml", usual, []string{"note transition-period-zero", "note image-gc-late imagefs.available"}},
		{"kubeadm.yaml", twoDisks, []string{"warning below-low-watermark memory.available", "note transition-period-zero", "note image-gc-late imagefs.available", "note large-disk-percentage imagefs.available"}},
		{"kind.yaml", usual, []string{"warning defaults-dropped", "warning images-never-deleted", "warning unguarded nodefs.available", "warning unguarded nodefs.inodesFree", "note transition-period-zero"}},
		{"k3s.yaml", usual, []string{"warning defaults-dropped"}},
		{"eks.yaml", unknown, []string{"note defaults-dropped"}},
		{"eks.yaml", usual, []string{"note defaults-dropped"}},
		{"eks.yaml", twoDisks, []string{"warning defaults-dropped", "warning imagefs-unguarded imagefs.available", "warning below-low-watermark memory.available"}},
		{"eks.yaml", "memory=2Gi", []string{"error allocatable-empty memory.available", "note defaults-dropped"}},
		{"aks.yaml", usual, []string{"note defaults-dropped"}},
		{"aks.yaml", "memory=16Gi,pid=2000", []string{"error always-met pid.available", "note defaults-dropped"}},
		{"gke.yaml", usual, []string{"note defaults-dropped"}},
		{"gke.yaml", "nodefs=45Gi", []string{"error allocatable-empty nodefs.available", "note defaults-dropped"}},
		{"openshift.yaml", usual, []string{"warning no-pod-grace", "note transition-period-zero"}},
		{"openshift-inodes.yaml", usual, []string{"error invalid-value imagefs.inodesFree", "error invalid-value nodefs.inodesFree"}},
		{"karpenter.yaml", unknown, []string{"warning no-pod-grace", "note defaults-dropped"}},
		{"karpenter.yaml", "memory=64Gi", []string{"warning soft-below-hard memory.available", "warning no-pod-grace", "note defaults-dropped"}},
	}
	for _, test := range tests {
		t.Run(test.file+" "+test.capacity, func(t *testing.T) {
			config, err := lint.Load(lint.Files{Config: filepath.Join("testdata", test.file), OS: "linux"})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, lint.Lint(config, node(t, test.capacity)), test.want)
		})
	}
}

func node(t *testing.T, capacity string) lint.Node {
	t.Helper()
	if capacity == "" {
		return lint.Node{}
	}
	parsed, err := lint.ParseCapacity(capacity)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func compare(t *testing.T, report *lint.Report, want []string) {
	t.Helper()
	var got, whole []string
	for _, f := range report.Findings {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.Name, f.Signal)))
		whole = append(whole, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Name, f.Where, f.Problem))
		if f.Problem == "" || f.Reason == "" || f.Fix == "" || len(f.Reports) == 0 || f.Doc != "docs/lint.md#"+f.Name {
			t.Errorf("%+v does not say enough", f)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwanted\n%s", strings.Join(whole, "\n"), strings.Join(want, "\n"))
	}
}

// TestSettings looks for what the shapes do not have, one setting at a time.
func TestSettings(t *testing.T) {
	tests := []struct {
		name, settings, capacity string
		want                     []string
	}{
		{"nothing to find", "imageGCHighThresholdPercent: 75\nimageGCLowThresholdPercent: 70", usual, nil},
		{"nothing in the file", "", usual, []string{"note image-gc-late imagefs.available"}},
		{"no threshold at all", "evictionHard: {}\nimageGCHighThresholdPercent: 75\nimageGCLowThresholdPercent: 70", usual, []string{"warning defaults-dropped"}},
		{"one key, merged", "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\nimageGCHighThresholdPercent: 75\nimageGCLowThresholdPercent: 70", usual, nil},
		{"soft without grace", "evictionSoft: {memory.available: 1Gi}", usual, []string{"error soft-without-grace memory.available", "note image-gc-late imagefs.available"}},
		{"soft with a grace of nonsense", "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: soon}", usual, []string{"error invalid-value memory.available", "note image-gc-late imagefs.available"}},
		{"grace without soft", "evictionSoftGracePeriod: {memory.available: 1m}", usual, []string{"note grace-without-soft memory.available", "note image-gc-late imagefs.available"}},
		{"reclaim without a threshold", "evictionMinimumReclaim: {pid.available: '100'}", usual, []string{"warning reclaim-without-threshold pid.available", "note image-gc-late imagefs.available"}},
		{"a negative grace for pods", "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1m}\nevictionMaxPodGracePeriod: -1", usual, []string{"note negative-pod-grace", "note image-gc-late imagefs.available"}},
		{"NaN (case 33)", "evictionHard: {memory.available: NaN%}\nmergeDefaultEvictionSettings: true", usual, []string{"error invalid-value memory.available", "note image-gc-late imagefs.available"}},
		{"an unknown signal", "evictionHard: {memory.free: 1Gi}\nmergeDefaultEvictionSettings: true", usual, []string{"error invalid-value memory.free", "note image-gc-late imagefs.available"}},
		{"image collection after eviction", "imageGCHighThresholdPercent: 95", usual, []string{"warning image-gc-late imagefs.available"}},
		{"image collection by amounts", "evictionHard: {imagefs.available: 30Gi}\nmergeDefaultEvictionSettings: true", usual, []string{"warning image-gc-late imagefs.available"}},
		{"image collection upside down", "imageGCHighThresholdPercent: 80\nimageGCLowThresholdPercent: 80", usual, []string{"error image-gc-refused"}},
		{"an unknown gate", "featureGates: {EvictionEvidence: true, NoSuchGate: true}", usual, []string{"error feature-gate", "note image-gc-late imagefs.available"}},
		{"a field in lower case", "evictionhard: {memory.available: 1Gi}", usual, []string{"warning lenient-decoding", "note image-gc-late imagefs.available"}},
		{"a misspelt field", "evictionHart: {memory.available: 1Gi}\nmemorySwap: {swapBehaviour: LimitedSwap}", usual, []string{"warning lenient-decoding", "warning lenient-decoding", "note image-gc-late imagefs.available"}},
		{"a field twice", "maxPods: 10\nmaxPods: 20", usual, []string{"warning lenient-decoding", "note image-gc-late imagefs.available"}},
		{"containerfs", "evictionHard: {containerfs.available: 5%}\nmergeDefaultEvictionSettings: true", usual, []string{"warning containerfs-overridden containerfs.available", "note image-gc-late imagefs.available"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config, err := load(test.settings)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, lint.Lint(config, node(t, test.capacity)), test.want)
		})
	}
}

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// load loads a file with the settings.
func load(settings string) (*lint.Config, error) {
	return lint.Load(lint.Files{Config: "kubelet.yaml", OS: "linux", Read: func(string) ([]byte, error) { return []byte(header + settings), nil }})
}

// What cannot be read names the file, the line and the field.
func TestUnreadable(t *testing.T) {
	for settings, want := range map[string]string{
		"maxPods: many":                     "kubelet.yaml:3: maxPods: a string is written where int32 is wanted",
		"\nevictionHard: 5":                 "kubelet.yaml:4: evictionHard: a number is written where map[string]string is wanted",
		"evictionHard: {pid.available: 10}": "kubelet.yaml:3: evictionHard",
		"imageMinimumGCAge: soon":           "kubelet.yaml:3: imageMinimumGCAge: time: invalid duration",
		"a: [":                              "kubelet.yaml: yaml: line",
		"---\nb: 1":                         "second document",
	} {
		if _, err := load(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", settings, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "empty", "just text": "not a KubeletConfiguration",
		"apiVersion: v1\nkind: Pod": "kubelet.yaml: kind Pod of v1",
		"apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig": "spec.kubeletConfig",
	} {
		_, err := lint.Load(lint.Files{Config: "kubelet.yaml", OS: "linux", Read: func(string) ([]byte, error) { return []byte(text), nil }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
}

// Findings and values name the line.
func TestLines(t *testing.T) {
	config, err := load("evictionHard:\n  pid.available: 1Ki\n  nodefs.available: 5%\nfeatureGates:\n  NoSuchGate: true\nsplines: reticulated")
	if err != nil {
		t.Fatal(err)
	}
	report := lint.Lint(config, lint.Node{})
	got := map[string]string{}
	for _, f := range report.Findings {
		got[f.Name] = f.Where
	}
	for name, want := range map[string]string{"invalid-value": "kubelet.yaml:4", "feature-gate": "kubelet.yaml:7", "lenient-decoding": "kubelet.yaml:8", "defaults-dropped": "kubelet.yaml:3"} {
		if got[name] != want {
			t.Errorf("%s is at %q, want %q", name, got[name], want)
		}
	}
}

// The defaults of the platform that this runs on are the package's own.
func TestDefaults(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		return // a kubelet does not run there, and lint does not know its defaults
	}
	config, err := lint.Load(lint.Files{Config: "kubelet.yaml", OS: runtime.GOOS, Read: func(string) ([]byte, error) { return []byte(header), nil }})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(config.Kubelet.EvictionHard), fmt.Sprint(eviction.DefaultEvictionHard); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestDropIns merges as the kubelet does: in lexical order, key by key, null removes,
// other files are passed over; defaults are those of the file of --config, and without
// one there are none.
func TestDropIns(t *testing.T) {
	folder := filepath.Join("testdata", "dropins", "kubelet.conf.d")
	config, err := lint.Load(lint.Files{Config: filepath.Join("testdata", "dropins", "base.yaml"), Directory: folder, OS: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	report := lint.Lint(config, node(t, usual))
	var got []string
	for _, v := range report.Effective {
		if v.Setting == "evictionHard" || v.Setting == "evictionPressureTransitionPeriod" {
			got = append(got, fmt.Sprintf("%s=%s %s %s", v.Signal, v.Value, v.Origin, strings.TrimPrefix(v.Where, folder+"/")))
		}
	}
	want := []string{
		"memory.available=1Gi file 10-memory.conf:5",
		"nodefs.available=5% file 20-soft.conf:6",
		"nodefs.inodesFree=5% merged the default, kept beside " + folder + "/20-soft.conf:4",
		"imagefs.available=15% merged the default, kept beside " + folder + "/20-soft.conf:4",
		"allocatableMemory.available=1Gi derived memory.available, for the pods' cgroup",
		"containerfs.available=5% derived nodefs.available",
		"containerfs.inodesFree=5% derived nodefs.inodesFree",
		"=2m0s file testdata/dropins/base.yaml:4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	compare(t, report, []string{
		"warning skipped-drop-in", "warning soft-acts-as-hard memory.available", "warning merge-in-drop-in", "note defaults-dropped", "note image-gc-late imagefs.available",
	})

	alone, err := lint.Load(lint.Files{Directory: folder, OS: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(alone.Kubelet.EvictionHard); got != "map[memory.available:1Gi nodefs.available:5%]" {
		t.Errorf("without --config: %s", got)
	}
}

// Every rule has a section of its own in the documentation, with its severity, its
// reason's reports, and nothing else has.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", lint.Doc))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		sections[name] = body
	}
	for _, rule := range lint.Rules() {
		body, found := sections[rule.Name]
		if !found {
			t.Errorf("%s has no section %q", lint.Doc, "### "+rule.Name)
			continue
		}
		for _, want := range append([]string{string(rule.Severity)}, rule.Reports...) {
			if !strings.Contains(strings.ToLower(body), strings.ToLower(want)) {
				t.Errorf("the section on %s does not say %s", rule.Name, want)
			}
		}
		if !strings.Contains(body, "**Fix**") {
			t.Errorf("the section on %s has no fix", rule.Name)
		}
		delete(sections, rule.Name)
	}
	for name := range sections {
		t.Errorf("%s has a section %q, and there is no such rule", lint.Doc, name)
	}
}
