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
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/lint"
)

func TestParseCapacity(t *testing.T) {
	for text, want := range map[string]string{
		"memory":                    "write NAME=AMOUNT",
		"":                          "write NAME=AMOUNT",
		"ram=1Gi":                   "the names are imagefs, imagefs.inodes, memory, nodefs, nodefs.inodes, pid",
		"memory=1Gi,memory=2Gi":     "memory is given twice",
		"memory=0":                  "not above 0",
		"pid=1Ki":                   "a unit of bytes",
		"memory=1e2147483648":       "more than any machine has",
		"nodefs=100Gi,imagefs=lots": `imagefs: "lots": not a quantity`,
	} {
		if _, err := lint.ParseCapacity(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
	one := node(t, "memory=16Gi, nodefs=100Gi")
	if one.Layout.DedicatedImageFs || one.Capacity["imagefs.available"] != 100<<30 || one.Capacity["memory.available"] != 16<<30 {
		t.Errorf("one disk: %+v, %+v", one.Capacity, one.Layout)
	}
	if two := node(t, "nodefs=100Gi,imagefs=100Gi"); !two.Layout.DedicatedImageFs {
		t.Error("an imagefs of the same size is not taken for another disk")
	}
	if none := node(t, "memory=16Gi"); none.Layout != nil {
		t.Errorf("no disk: %+v", none.Layout)
	}
}

func TestNodeOf(t *testing.T) {
	object := &v1.Node{Status: v1.NodeStatus{Capacity: v1.ResourceList{
		v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}}}
	number := func(n uint64) *uint64 { return &n }
	disk := func(bytes uint64) *statsapi.FsStats {
		return &statsapi.FsStats{CapacityBytes: number(bytes), Inodes: number(6000000)}
	}
	summary := func(image uint64) *statsapi.Summary {
		return &statsapi.Summary{Node: statsapi.NodeStats{Fs: disk(100 << 30), Runtime: &statsapi.RuntimeStats{ImageFs: disk(image)}}}
	}
	if n := lint.NodeOf(object, nil); n.Capacity["memory.available"] != 16<<30 || n.Capacity["nodefs.available"] != 100<<30 || n.Layout != nil {
		t.Errorf("without a summary: %+v", n)
	}
	if n := lint.NodeOf(object, summary(100<<30)); n.Layout.DedicatedImageFs || n.Capacity["nodefs.inodesFree"] != 6000000 {
		t.Errorf("one disk: %+v", n)
	}
	if n := lint.NodeOf(object, summary(200<<30)); !n.Layout.DedicatedImageFs || n.Capacity["imagefs.available"] != 200<<30 {
		t.Errorf("two disks: %+v", n)
	}
	lint.NodeOf(&v1.Node{}, &statsapi.Summary{})
}

// What a kubelet says of itself has its own gates, and no lines.
func TestConfigz(t *testing.T) {
	config, err := lint.FromConfigz("worker-1", []byte(`{"kubeletconfig": {"evictionHard": {"nodefs.available": "5%"}, "evictionPressureTransitionPeriod": "5m0s",
		"featureGates": {"GateOfAnotherVersion": true}, "fieldOfAnotherVersion": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	report := lint.Lint(config, node(t, usual))
	compare(t, report, []string{"warning unguarded memory.available", "warning unguarded nodefs.inodesFree"})
	if v := report.Effective[0]; v.Origin != lint.FromKubelet || v.Signal != "nodefs.available" || v.Amount != "5Gi" {
		t.Errorf("%+v", v)
	}
	for _, answer := range []string{"", "{}", "no", `{"kubeletconfig": 5}`} {
		if _, err := lint.FromConfigz("worker-1", []byte(answer)); err == nil || !strings.Contains(err.Error(), "worker-1") {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func FuzzParseCapacity(f *testing.F) {
	f.Add("memory=16Gi,nodefs=100Gi")
	f.Add("pid=1e2147483648")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := lint.ParseCapacity(text)
		for signal, capacity := range n.Capacity {
			if err != nil || capacity <= 0 {
				t.Errorf("%q: %s is %d, %v", text, signal, capacity, err)
			}
		}
	})
}

// FuzzLoad: whatever the file says, there is an error that names it or a report.
func FuzzLoad(f *testing.F) {
	f.Add("evictionHard: {memory.available: 5%}\nfeatureGates: {NoSuchGate: true}")
	f.Add("evictionHart: 1\nmemorySwap: {a: {b: 1}}")
	f.Add("evictionSoft: {x: 1Gi}\nimageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: null")
	f.Add("evictionPressureTransitionPeriod: 0\nkubeReserved: {memory: x}")
	f.Add("kubeReserved: {memory: 1e2147483648, ephemeral-storage: '0'}\nsystemReserved: {memory: -1Gi}")
	capacity, err := lint.ParseCapacity(usual)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, settings string) {
		config, err := load(settings)
		if err != nil {
			if !strings.Contains(err.Error(), "kubelet.yaml") {
				t.Errorf("%v does not name the file", err)
			}
			return
		}
		lint.Lint(config, capacity)
	})
}
