//go:build !kubernetes1.35 && !kubernetes1.36

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

package guest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe/machine"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// heard collects what Stalls reports.
type heard struct {
	mu      sync.Mutex
	sources map[string]int
}

func (h *heard) happened(source string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources[source]++
}

func (h *heard) count(source string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sources[source]
}

func (h *heard) await(t *testing.T, source string) time.Duration {
	t.Helper()
	begin := time.Now()
	for time.Since(begin) < time.Minute {
		if h.count(source) > 0 {
			return time.Since(begin)
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("nothing of %s within a minute", source)
	return 0
}

// TestStallsWake: tasks of the pods' cgroup that wait for memory are reported,
// and so are events of its limits.
func TestStallsWake(t *testing.T) {
	needsGuest(t)
	group := newGroup(t, "kubepods")
	write(t, filepath.Join(group, "memory.high"), strconv.Itoa(20<<20))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := &heard{sources: map[string]int{}}
	watched, err := wake.Stalls(ctx, "/proc", hierarchy, "kubepods", h.happened)
	if err != nil || len(watched) != 3 {
		t.Fatalf("watches %v, not the others: %v", watched, err)
	}
	time.Sleep(500 * time.Millisecond)
	if quiet := h.count(filepath.Join(group, "memory.pressure")); quiet != 0 {
		t.Errorf("%d stalls of nobody", quiet)
	}
	startHog(t, group, 60)
	t.Log("memory.events after", h.await(t, filepath.Join(group, "memory.events")))
	t.Log("memory.pressure after", h.await(t, filepath.Join(group, "memory.pressure")))

	// When the context ends nothing is left open.
	cancel()
	for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		open := openFiles(t, "memory.pressure", "pressure/memory", "inotify", "[eventfd]")
		if len(open) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("open a second after the end: %v", open)
		}
	}
}

// openFiles lists what of this process is open and has one of the words in its name.
func openFiles(t *testing.T, words ...string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, link := range links {
		target, _ := os.Readlink(link) // one may be closed by now
		for _, word := range words {
			// The runtime's own poller has an eventfd, since before the test.
			if strings.Contains(target, word) && !strings.Contains(target, "eventfd") {
				open = append(open, target)
			}
		}
	}
	return open
}

// TestStallsOfAGroupThatGoes: the pods' cgroup may be removed; that ends its
// part, and spins nothing.
func TestStallsOfAGroupThatGoes(t *testing.T) {
	needsGuest(t)
	group := filepath.Join(hierarchy, "gone")
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &heard{sources: map[string]int{}}
	if watched, err := wake.Stalls(t.Context(), "/proc", hierarchy, "gone", h.happened); err != nil {
		t.Fatal(watched, err)
	}
	if err := os.Remove(group); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if n := h.count(filepath.Join(group, "memory.pressure")); n > 1 {
		t.Errorf("%d stalls of a cgroup that is gone", n)
	}
	if n := h.count(filepath.Join(group, "memory.events")); n > 1 {
		t.Errorf("%d events of a cgroup that is gone", n)
	}
}

// TestProbeAgreesWithCadvisor reads the same cgroups both ways: the machine's
// root, and one with a hog in it.
func TestProbeAgreesWithCadvisor(t *testing.T) {
	needsGuest(t)
	group := newGroup(t, "kubepods")
	write(t, filepath.Join(group, "memory.max"), strconv.Itoa(500<<20))
	startHog(t, group, 100)
	time.Sleep(3 * time.Second) // it has what it wants
	probe, missing := machine.Linux.NewProbe("kubepods", false)
	if len(missing) > 0 {
		t.Fatal(missing)
	}
	defer probe.Close()
	for signal, path := range map[evictionapi.Signal]string{evictionapi.SignalMemoryAvailable: "/", evictionapi.SignalAllocatableMemoryAvailable: "/kubepods"} {
		group, err := manager.New(&cgroups.Cgroup{Path: path, Resources: &cgroups.Resources{}})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := libcontainer.NewHandler(group, "/", 0, container.MetricSet{container.MemoryUsageMetrics: struct{}{}}).GetStats()
		if err != nil {
			t.Fatal(err)
		}
		got, err := probe.Read(signal)
		if err != nil {
			t.Fatal(err)
		}
		used, want := got.Capacity-got.Available, int64(stats.Memory.WorkingSet)
		t.Logf("%s: the probe says that %s are used, cadvisor %s", signal, resource.NewQuantity(used, resource.BinarySI), resource.NewQuantity(want, resource.BinarySI))
		if math.Abs(float64(used-want)) > 0.01*float64(got.Capacity) {
			t.Errorf("%s: %d used of %d, cadvisor says %d", signal, used, got.Capacity, want)
		}
	}
	if got, err := machine.Linux.PodMemory("/kubepods"); err != nil || got < 90<<20 || got > 130<<20 {
		t.Errorf("a pod with 100 MiB has %d, %v", got, err)
	}
}
