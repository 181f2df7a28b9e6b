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
	"strings"
	"testing"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// pressed is a machine that waits, swaps and bounds its pods' processes.
func pressed(files tree, pids string) tree {
	return files.with(tree{
		"proc/meminfo":                       "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:   14680064 kB\nSwapTotal:       4194304 kB\nSwapFree:        1048576 kB\n",
		"proc/pressure/memory":               "some avg10=12.34 avg60=5.00 avg300=0.10 total=1\nfull avg10=1.50 avg60=0.00 avg300=0.00 total=1\n",
		"proc/pressure/io":                   "some avg10=100.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=33.33 avg300=0.00 total=1\n",
		pids + "pids.current":                "100\n",
		pids + "pids.max":                    "1100\n",
		"cgroup/kubepods/memory.stat":        "anon 1\nfile 1\ninactive_file 1048576\nactive_file 268435456\nslab_reclaimable 1048576\n",
		"cgroup/memory/kubepods/memory.stat": "total_inactive_file 1048576\ntotal_active_file 268435456\n",
	})
}

func TestExtraSignals(t *testing.T) {
	v1, v2 := "cgroup/pids/kubepods/", "cgroup/kubepods/"
	noV2 := tree{"cgroup/kubepods/memory.stat": "", "cgroup/memory/kubepods/memory.stat": ""}
	for _, test := range []struct {
		name   string
		files  tree
		signal evictionapi.Signal
		want   observe.Observation
		fault  string
	}{
		{"some, of memory", pressed(version2, v2), observe.SignalMemoryPressureSome10, observe.Observation{Available: 87_66, Capacity: 100_00}, ""},
		{"all, of memory", pressed(version2, v2), observe.SignalMemoryPressureFull10, observe.Observation{Available: 98_50, Capacity: 100_00}, ""},
		{"some, of memory, over a minute", pressed(version2, v2), observe.SignalMemoryPressureSome60, observe.Observation{Available: 95_00, Capacity: 100_00}, ""},
		{"always, for IO", pressed(version2, v2), observe.SignalIOPressureSome10, observe.Observation{Available: 0, Capacity: 100_00}, ""},
		{"all, for IO, over a minute", pressed(version2, v2), observe.SignalIOPressureFull60, observe.Observation{Available: 66_67, Capacity: 100_00}, ""},
		{"swap", pressed(version2, v2), observe.SignalSwapAvailable, observe.Observation{Available: 1 * gibi, Capacity: 4 * gibi}, ""},
		{"the pods' processes, v2", pressed(version2, v2), observe.SignalAllocatablePIDAvailable, observe.Observation{Available: 1000, Capacity: 1100}, ""},
		{"the pods' processes, v1", pressed(version1, v1).with(noV2), observe.SignalAllocatablePIDAvailable, observe.Observation{Available: 1000, Capacity: 1100}, ""},
		{"no limit of processes", pressed(version2, v2).with(tree{v2 + "pids.max": "max\n"}), observe.SignalAllocatablePIDAvailable, observe.Observation{}, "sets no limit"},
		{"more processes than may be", pressed(version2, v2).with(tree{v2 + "pids.current": "2000\n"}), observe.SignalAllocatablePIDAvailable, observe.Observation{Capacity: 1100}, ""},
		{"a kernel without PSI", pressed(version2, v2).with(tree{"proc/pressure/memory": ""}), observe.SignalMemoryPressureFull10, observe.Observation{}, "no such file"},
		{"an absurd pressure", pressed(version2, v2).with(tree{"proc/pressure/memory": "some avg10=nan\nfull avg10=-1 avg60=101\n"}), observe.SignalMemoryPressureFull10, observe.Observation{}, "not a percentage"},
		{"a pressure cut off", pressed(version2, v2).with(tree{"proc/pressure/memory": "some avg1"}), observe.SignalMemoryPressureSome10, observe.Observation{}, "has no some avg10="},
		{"no swap", pressed(version2, v2).with(tree{"proc/meminfo": "MemTotal: 16777216 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"}), observe.SignalSwapAvailable, observe.Observation{}, "has no swap"},
		{"more swap free than there is", pressed(version2, v2).with(tree{"proc/meminfo": "MemTotal: 16777216 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n"}), observe.SignalSwapAvailable, observe.Observation{}, "are free"},
	} {
		t.Run(test.name, func(t *testing.T) {
			roots := test.files.on(t)
			probe, _ := roots.NewProbe("kubepods", false)
			defer probe.Close()
			missing := probe.AddExtraSignals(roots, "kubepods")
			got, err := probe.Read(test.signal)
			if test.fault == "" {
				if err != nil || got != test.want {
					t.Errorf("%+v %v, want %+v", got, err, test.want)
				}
				return
			}
			told := ""
			for _, fault := range missing {
				told += fault.Error() + "\n"
			}
			if err == nil || !strings.Contains(told, test.fault) {
				t.Errorf("%+v, missing:\n%s, want %q", got, told, test.fault)
			}
		})
	}
}

// What the kernel could make available besides: 14 GiB by its own account, of which
// the kubelet counts 12.5.
func TestReclaimable(t *testing.T) {
	for _, test := range []struct {
		name       string
		files      tree
		node, pods int64
		missing    int
	}{
		{"v2", pressed(version2, "cgroup/kubepods/"), 14*gibi - (12*gibi + gibi/2), 257 * mebi, 0},
		{"v1", pressed(version1, "cgroup/pids/kubepods/").with(tree{"cgroup/kubepods/memory.stat": ""}), 14*gibi - (12*gibi + gibi/2), 256 * mebi, 0},
		{"the kernel counts less", pressed(version2, "cgroup/kubepods/").with(tree{"proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 1 kB\n"}), 0, 257 * mebi, 0},
		{"a kernel that does not say", pressed(version2, "cgroup/kubepods/").with(tree{"proc/meminfo": "MemTotal: 16777216 kB\n"}), 0, 257 * mebi, 1},
		{"no PSI", pressed(version2, "cgroup/kubepods/").with(tree{"proc/pressure/memory": ""}), 14*gibi - (12*gibi + gibi/2), 257 * mebi, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			roots := test.files.on(t)
			probe, _ := roots.NewProbe("kubepods", false)
			defer probe.Close()
			if missing := probe.AddReclaimable(roots, "kubepods"); len(missing) != test.missing {
				t.Errorf("missing: %v", missing)
			}
			for signal, want := range map[evictionapi.Signal]int64{evictionapi.SignalMemoryAvailable: test.node, evictionapi.SignalAllocatableMemoryAvailable: test.pods} {
				if got, err := probe.Read(signal); err != nil || got.Reclaimable != want {
					t.Errorf("%s: %d %v, want %d", signal, got.Reclaimable, err, want)
				}
			}
		})
	}
}

// Holding a pod to what it uses, and letting it go.
func TestHoldMemory(t *testing.T) {
	roots := version2.with(tree{"cgroup/pod/memory.current": "12345678\n", "cgroup/pod/memory.high": "max\n"}).on(t)
	release, err := roots.HoldMemory("pod")
	if err != nil {
		t.Fatal(err)
	}
	high := file{path: roots.Cgroup + "/pod/memory.high"}
	defer high.close()
	if held, err := high.number(); err != nil || held != 12345678 {
		t.Errorf("held to %d, %v", held, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if text, err := high.read(); err != nil || strings.TrimSpace(string(text)) != "max" {
		t.Errorf("let go to %q, %v", text, err)
	}
	for name, group := range map[string]string{"no cgroup": "", "gone": "gone", "a way out": "../pod"} {
		if _, err := roots.HoldMemory(group); err == nil {
			t.Errorf("%s: held", name)
		}
	}
	if _, err := version1.on(t).HoldMemory("kubepods"); err == nil {
		t.Error("held on cgroup v1, which has no memory.high")
	}
}
