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
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe/machine"
)

// TestHoldMemory measures how much a hog that grows takes in a second, left alone and
// held to what it has.
func TestHoldMemory(t *testing.T) {
	needsGuest(t)
	grown := func(name string, hold bool) int64 {
		group := newGroup(t, name)
		startHog(t, group, 600)
		current := func() int64 { return number(t, filepath.Join(group, "memory.current")) }
		for begin := time.Now(); current() < 30<<20; time.Sleep(time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatal("the hog does not grow")
			}
		}
		before := current()
		if hold {
			if _, err := machine.Linux.HoldMemory(name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		return current() - before
	}
	loose, held := grown("loose", false), grown("held", true)
	t.Logf("in a second the hog took %d MiB more, held %d MiB", loose>>20, held>>20)
	if held > loose/4 {
		t.Errorf("held it took %d MiB, left alone %d", held>>20, loose>>20)
	}
}

func number(t *testing.T, file string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(read(t, file), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// touched keeps the compiler from leaving out the reading.
var touched byte

func mapFile(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mapped); err != nil {
			t.Error(err)
		}
	})
	return mapped
}

// TestPageCacheCountsUntilTheNodeThrashes: what is cached and used counts as used
// by the kubelet and as available by the kernel; tasks that wait for memory end
// that.
func TestPageCacheCountsUntilTheNodeThrashes(t *testing.T) {
	needsGuest(t)
	probe, missing := machine.Linux.NewProbe("/", false)
	defer probe.Close()
	if probe == nil {
		t.Fatal(missing)
	}
	if missing := probe.AddReclaimable(machine.Linux, "/"); len(missing) > 0 {
		t.Log(missing)
	}
	look := func() (counted, plain observe.Observation, stall float64) {
		t.Helper()
		seen := observe.Observations{}
		for _, signal := range []evictionapi.Signal{evictionapi.SignalMemoryAvailable, observe.SignalMemoryPressureFull10} {
			o, err := probe.Read(signal)
			if err != nil {
				t.Fatal(err)
			}
			seen[signal] = o
		}
		plain = seen[evictionapi.SignalMemoryAvailable]
		pressure := seen[observe.SignalMemoryPressureFull10]
		seen.CountReclaimable()
		return seen[evictionapi.SignalMemoryAvailable], plain, float64(pressure.Capacity-pressure.Available) / 100
	}

	// On the guest's disk: the root is made of memory, and its files cannot be dropped.
	folder, err := os.MkdirTemp(".", "cache")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(folder, "data")
	// More than the kernel's own memory, which the kubelet counts as available and the
	// kernel does not.
	chunk := make([]byte, 1<<20)
	written, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := written.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(written.Sync(), written.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, "/proc/sys/vm/drop_caches", "1")
	mapped := mapFile(t, file)
	for range 2 { // what is mapped and used is active, which the kubelet counts as used
		for i := 0; i < len(mapped); i += os.Getpagesize() {
			touched += mapped[i]
		}
	}
	counted, plain, stall := look()
	t.Logf("%d MiB available as the kubelet counts, %d MiB with what can be reclaimed, stalled %.2f %%", plain.Available>>20, counted.Available>>20, stall)
	if counted.Available-plain.Available < 100<<20 {
		t.Errorf("only %d MiB can be reclaimed", (counted.Available-plain.Available)>>20)
	}

	group := newGroup(t, "thrash")
	write(t, filepath.Join(group, "memory.high"), strconv.Itoa(20<<20))
	startHog(t, group, 200)
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(500 * time.Millisecond) {
		if counted, plain, stall = look(); stall > 10 {
			break
		}
	}
	t.Logf("stalled %.2f %%: %d MiB available, %d MiB counted", stall, plain.Available>>20, counted.Available>>20)
	if stall <= 10 {
		t.Fatal("the guest does not stall")
	}
	if counted.Available != plain.Available {
		t.Errorf("%d MiB are counted that nobody can have", (counted.Available-plain.Available)>>20)
	}
}
