//go:build linux

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

package machine

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// tree is a machine made of files: name to content, below a folder of its own.
type tree map[string]string

func (files tree) on(t *testing.T) Roots {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		put(t, filepath.Join(root, name), content)
	}
	return Roots{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys"), Cgroup: filepath.Join(root, "cgroup")}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// with returns a copy with some files changed; an empty content removes one.
func (files tree) with(changes tree) tree {
	all := tree{}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range changes {
		if all[name] = content; content == "" {
			delete(all, name)
		}
	}
	return all
}

// common is what both versions of cgroups have beside them: 16 GiB of memory and
// 80 threads of 32768.
var common = tree{
	"proc/meminfo":                "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n",
	"proc/sys/kernel/pid_max":     "32768\n",
	"proc/sys/kernel/threads-max": "100000\n",
	"proc/loadavg":                "0.20 0.18 0.12 2/80 11206\n",
}

// version2 is a machine whose root uses 3 GiB and 1 GiB of cache, half of it
// inactive; its pods use 2 GiB of 8.
var version2 = common.with(tree{
	"cgroup/cgroup.controllers":      "cpuset cpu io memory pids\n",
	"cgroup/memory.stat":             "anon 3221225472\nfile 1073741824\nkernel 1\ninactive_anon 5\ninactive_file 536870912\n",
	"cgroup/kubepods/memory.current": "2147483648\n",
	"cgroup/kubepods/memory.max":     "8589934592\n",
	"cgroup/kubepods/memory.stat":    "anon 1\nfile 1\ninactive_file 1048576\n",
})

// version1 is the same machine with cgroup v1.
var version1 = common.with(tree{
	"cgroup/memory/memory.usage_in_bytes":          "4294967296\n",
	"cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
	"cgroup/memory/memory.stat":                    "cache 1\ninactive_file 7\ntotal_cache 1\ntotal_inactive_file 536870912\n",
	"cgroup/memory/kubepods/memory.usage_in_bytes": "2147483648\n",
	"cgroup/memory/kubepods/memory.limit_in_bytes": "8589934592\n",
	"cgroup/memory/kubepods/memory.stat":           "total_inactive_file 1048576\n",
})

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

func TestReads(t *testing.T) {
	for _, test := range []struct {
		name   string
		files  tree
		signal evictionapi.Signal
		want   observe.Observation
		// fault is a part of the error, where there is one.
		fault string
	}{
		{"v2 node", version2, evictionapi.SignalMemoryAvailable, observe.Observation{Available: 12*gibi + 512*mebi, Capacity: 16 * gibi}, ""},
		{"v1 node", version1, evictionapi.SignalMemoryAvailable, observe.Observation{Available: 12*gibi + 512*mebi, Capacity: 16 * gibi}, ""},
		{"v2 pods", version2, evictionapi.SignalAllocatableMemoryAvailable, observe.Observation{Available: 6*gibi + mebi, Capacity: 8 * gibi}, ""},
		{"v1 pods", version1, evictionapi.SignalAllocatableMemoryAvailable, observe.Observation{Available: 6*gibi + mebi, Capacity: 8 * gibi}, ""},
		{"v2 root of a namespace", version2.with(tree{"cgroup/memory.current": "1073741824\n"}), evictionapi.SignalMemoryAvailable,
			observe.Observation{Available: 15*gibi + 512*mebi, Capacity: 16 * gibi}, ""},
		{"more is inactive than used", version1.with(tree{"cgroup/memory/memory.usage_in_bytes": "1"}), evictionapi.SignalMemoryAvailable,
			observe.Observation{Available: 16 * gibi, Capacity: 16 * gibi}, ""},
		{"more is used than there is", version1.with(tree{"cgroup/memory/memory.usage_in_bytes": "99999999999999999999"}), evictionapi.SignalMemoryAvailable,
			observe.Observation{Available: 0, Capacity: math.MaxInt64 - 512*mebi}, ""},
		{"pods without a limit, v2", version2.with(tree{"cgroup/kubepods/memory.max": "max\n"}), evictionapi.SignalAllocatableMemoryAvailable, observe.Observation{}, "memory.max"},
		{"pods without a limit, v1", version1.with(tree{"cgroup/memory/kubepods/memory.limit_in_bytes": "9223372036854771712\n"}), evictionapi.SignalAllocatableMemoryAvailable, observe.Observation{}, "no limit"},
		{"no pods yet", version2.with(tree{"cgroup/kubepods/memory.stat": ""}), evictionapi.SignalAllocatableMemoryAvailable, observe.Observation{}, "no such file"},
		{"stat without inactive_file", version2.with(tree{"cgroup/memory.stat": "anon 1\nfile 2\n"}), evictionapi.SignalMemoryAvailable, observe.Observation{}, "inactive_file"},
		{"words for numbers", version1.with(tree{"cgroup/memory/memory.usage_in_bytes": "lots\n"}), evictionapi.SignalMemoryAvailable, observe.Observation{}, "lots"},
		{"negative number", version1.with(tree{"cgroup/memory/memory.usage_in_bytes": "-5\n"}), evictionapi.SignalMemoryAvailable, observe.Observation{}, "-5"},
		{"empty file", version1.with(tree{"cgroup/memory/memory.usage_in_bytes": "\n"}), evictionapi.SignalMemoryAvailable, observe.Observation{}, "not a number"},
		{"no MemTotal", version2.with(tree{"proc/meminfo": "MemFree: 5 kB\n"}), evictionapi.SignalMemoryAvailable, observe.Observation{}, "MemTotal"},
		{"absurd MemTotal", version2.with(tree{"proc/meminfo": "MemTotal: 9999999999999999999 kB\n"}), evictionapi.SignalMemoryAvailable, observe.Observation{}, "KiB"},
		{"no memory controller", common, evictionapi.SignalMemoryAvailable, observe.Observation{}, "no memory cgroup"},
		{"processes", version2, evictionapi.SignalPIDAvailable, observe.Observation{Available: 32688, Capacity: 32768}, ""},
		{"threads-max is less", version2.with(tree{"proc/sys/kernel/threads-max": "1000\n"}), evictionapi.SignalPIDAvailable, observe.Observation{Available: 920, Capacity: 1000}, ""},
		{"loadavg without a slash", version2.with(tree{"proc/loadavg": "0.20 0.18\n"}), evictionapi.SignalPIDAvailable, observe.Observation{}, "load"},
		{"loadavg cut short", version2.with(tree{"proc/loadavg": "0.20 0.18 0.12 2/"}), evictionapi.SignalPIDAvailable, observe.Observation{}, "load"},
	} {
		t.Run(test.name, func(t *testing.T) {
			probe, missing := test.files.on(t).NewProbe("/kubepods", true)
			defer probe.Close()
			got, err := probe.Read(test.signal)
			if test.fault != "" {
				if err == nil || !strings.Contains(errors.Join(missing...).Error(), test.fault) {
					t.Fatalf("read %+v, %v; missing %v: want a fault that names %q", got, err, missing, test.fault)
				}
				return
			}
			if err != nil || got != test.want {
				t.Fatalf("got %+v, %v, want %+v (missing: %v)", got, err, test.want, missing)
			}
		})
	}
}

func TestHugePagesCountAsTaken(t *testing.T) {
	roots := version2.with(tree{
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":    "512\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "2\n",
		"sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages":      "99999999999999999999\n",
	}).on(t)
	for _, test := range []struct {
		count bool
		want  int64
	}{{true, 9*gibi + 512*mebi}, {false, 12*gibi + 512*mebi}} {
		probe, missing := roots.NewProbe("/kubepods", test.count)
		if len(missing) > 0 {
			t.Fatal(missing)
		}
		if got, err := probe.Read(evictionapi.SignalMemoryAvailable); err != nil || got.Available != test.want {
			t.Errorf("count %v: got %+v, %v, want %d", test.count, got, err, test.want)
		}
		probe.Close()
	}
}

// TestFilesChangeWhileOpen follows numbers through files that are written,
// replaced, removed and there again.
func TestFilesChangeWhileOpen(t *testing.T) {
	roots := version2.on(t)
	probe, missing := roots.NewProbe("/kubepods", true)
	if len(missing) > 0 {
		t.Fatal(missing)
	}
	defer probe.Close()
	current := filepath.Join(roots.Cgroup, "kubepods/memory.current")
	expect := func(want int64) {
		t.Helper()
		if got, err := probe.Read(evictionapi.SignalAllocatableMemoryAvailable); err != nil || got.Available != want {
			t.Errorf("got %+v, %v, want %d", got, err, want)
		}
	}
	expect(6*gibi + mebi)
	put(t, current, "3221225472\n")
	expect(5*gibi + mebi)
	put(t, current, "x\n")
	if got, err := probe.Read(evictionapi.SignalAllocatableMemoryAvailable); err == nil {
		t.Errorf("read %+v of a file that holds a word", got)
	}
	put(t, current, "1073741824\n")
	expect(7*gibi + mebi)
}

// TestLongFile reads a memory.stat that is longer than the buffer.
func TestLongFile(t *testing.T) {
	long := strings.Repeat("some_counter_of_a_later_kernel 12345\n", 500) + "anon 1\nfile 0\ninactive_file 0\n"
	probe, missing := version2.with(tree{"cgroup/memory.stat": long}).on(t).NewProbe("/kubepods", false)
	if len(missing) > 0 {
		t.Fatal(missing)
	}
	defer probe.Close()
	if got, err := probe.Read(evictionapi.SignalMemoryAvailable); err != nil || got.Available != 16*gibi-1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFilesystem(t *testing.T) {
	probe, missing := common.on(t).NewProbe("/kubepods", false)
	if len(missing) == 0 {
		t.Error("there is no memory to read, and nobody says so")
	}
	defer probe.Close()
	if err := probe.AddFilesystem(observe.NodeFs, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a path that is not there: %v", err)
	}
	if err := probe.AddFilesystem(observe.NodeFs, "/"); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []evictionapi.Signal{evictionapi.SignalNodeFsAvailable, evictionapi.SignalNodeFsInodesFree} {
		if got, err := probe.Read(signal); err != nil || got.Capacity <= 0 || got.Available < 0 || got.Available > got.Capacity {
			t.Errorf("%s: %+v, %v", signal, got, err)
		}
	}
	if got := probe.Signals(); len(got) != 3 {
		t.Errorf("probes of %v, want nodefs bytes and inodes, and processes", got)
	}
}

func TestPodMemory(t *testing.T) {
	roots := version2.with(tree{
		"cgroup/kubepods/pod1/memory.current": "1048576\n",
		"cgroup/kubepods/pod1/memory.stat":    "inactive_file 4096\n",
	}).on(t)
	if got, err := roots.PodMemory("/kubepods/pod1"); err != nil || got != mebi-4096 {
		t.Errorf("got %d, %v", got, err)
	}
	for _, group := range []string{"", "/kubepods/pod2", "/../../etc"} {
		if got, err := roots.PodMemory(group); err == nil {
			t.Errorf("%q: read %d", group, got)
		}
	}
}

// TestReadsWithoutAllocation holds the probe to what it promises, on the real
// files of this machine where it has them.
func TestReadsWithoutAllocation(t *testing.T) {
	probe, missing := Linux.NewProbe("/", false)
	defer probe.Close()
	t.Log("missing here:", missing)
	if err := probe.AddFilesystem(observe.NodeFs, "/"); err != nil {
		t.Fatal(err)
	}
	for _, signal := range probe.Signals() {
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := probe.Read(signal); err != nil {
				t.Fatal(err)
			}
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations a read", signal, allocations)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	probe, _ := Linux.NewProbe("/", false) // whatever there is
	defer probe.Close()
	if err := probe.AddFilesystem(observe.NodeFs, "/"); err != nil {
		b.Fatal(err)
	}
	for _, signal := range probe.Signals() {
		b.Run(string(signal), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := probe.Read(signal); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzField looks for texts that the reader of fields stumbles over.
func FuzzField(f *testing.F) {
	f.Add([]byte("anon 1\nfile 2\ninactive_file 3\n"), "file")
	f.Add([]byte("MemTotal:  16777216 kB\n"), "MemTotal")
	f.Add([]byte("\n\n anon"), "anon")
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		file := file{path: "fuzz"}
		if n, err := file.fieldOf(text, key); err == nil && n < 0 {
			t.Errorf("%q in %q is %d", key, text, n)
		}
	})
}
