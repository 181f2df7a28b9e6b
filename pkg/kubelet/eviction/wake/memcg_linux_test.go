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

package wake

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// fakeMemcg is a folder with the files of a memory cgroup (v1).
type fakeMemcg struct{ path string }

func newFakeMemcg(t *testing.T) fakeMemcg {
	t.Helper()
	path := t.TempDir()
	for _, file := range []string{MemoryUsage, "cgroup.event_control"} {
		if err := os.WriteFile(filepath.Join(path, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fakeMemcg{path}
}

// registered returns what was last written for the kernel: the eventfd and the value.
func (f fakeMemcg) registered(t *testing.T) (eventfd int, value int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.path, "cgroup.event_control"))
	if err != nil {
		t.Fatal(err)
	}
	var watched int
	if _, err := fmt.Sscanf(string(text), "%d %d %d", &eventfd, &watched, &value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return eventfd, value
}

// cross does what the kernel does at a crossing.
func (f fakeMemcg) cross(t *testing.T) {
	t.Helper()
	eventfd, _ := f.registered(t)
	if _, err := unix.Write(eventfd, binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestMemcgEvent(t *testing.T) {
	defer goleak.VerifyNone(t)
	cgroup := newFakeMemcg(t)
	notifier, err := newMemcgEvent(cgroup.path, MemoryUsage, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, value := cgroup.registered(t); value != 4096 {
		t.Errorf("registered %d", value)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	crossed := make(chan struct{})
	ended := make(chan struct{})
	go func() { defer close(ended); notifier.Start(ctx, crossed) }()
	for range 3 {
		cgroup.cross(t)
		await(t, crossed, "no event came")
	}
	notifier.Stop()
	await(t, ended, "Start did not end with Stop")
	notifier.Stop()
}

// The end of the context ends Start, also while an event waits to be taken.
func TestMemcgEventEndsWithContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, waiting := range []bool{false, true} {
		cgroup := newFakeMemcg(t)
		notifier, err := newMemcgEvent(cgroup.path, MemoryUsage, 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); notifier.Start(ctx, make(chan struct{})) }()
		if waiting {
			cgroup.cross(t)
		}
		cancel()
		await(t, ended, "Start did not end with its context")
	}
}

func TestMemcgEventWithoutCgroup(t *testing.T) {
	if notifier, err := newMemcgEvent(t.TempDir(), MemoryUsage, 1); err == nil {
		t.Errorf("made %v of an empty folder", notifier)
	}
}

// TestMemcgEventOnThisMachine registers with the real kernel.
func TestMemcgEventOnThisMachine(t *testing.T) {
	const cgroup = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(filepath.Join(cgroup, "cgroup.event_control")); err != nil {
		t.Skipf("SKIP: no memory cgroup of version 1: %v", err)
	}
	own, err := os.MkdirTemp(cgroup, "eviction-test-")
	if err != nil {
		t.Skipf("SKIP: no cgroup can be made: %v", err)
	}
	defer os.Remove(own)
	notifier, err := newMemcgEvent(own, MemoryUsage, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	notifier.Stop()
}

// A memory threshold calls its handler for each crossing, watches capacity less
// threshold plus inactive page cache, and moves when the numbers do.
func TestMemoryThreshold(t *testing.T) {
	defer goleak.VerifyNone(t)
	cgroup := newFakeMemcg(t)
	quantity := resource.MustParse("1Gi")
	threshold := evictionapi.Threshold{Signal: evictionapi.SignalMemoryAvailable, Operator: evictionapi.OpLessThan, Value: evictionapi.ThresholdValue{Quantity: &quantity}}
	var calls atomic.Int64
	called := make(chan struct{}, 9)
	m := MemoryThresholdAt(threshold, cgroup.path, func(_ klog.Logger, path, attribute string, value int64) (Notifier, error) {
		return newMemcgEvent(path, attribute, value)
	}, func(string) { calls.Add(1); called <- struct{}{} })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Start(ctx) }()

	n := func(gi float64) *uint64 { n := uint64(gi * (1 << 30)); return &n }
	summary := &statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{AvailableBytes: n(3), WorkingSetBytes: n(1), UsageBytes: n(1.5)}}}
	for want, usage := range map[int64]float64{3<<30 + 1<<29: 1.5, 4 << 30: 2} {
		summary.Node.Memory.UsageBytes = n(usage)
		if err := m.UpdateThreshold(ctx, summary); err != nil {
			t.Fatal(err)
		}
		if _, value := cgroup.registered(t); value != want {
			t.Errorf("registered %d, want %d", value, want)
		}
		cgroup.cross(t)
		await(t, called, "the handler was not called")
	}
	if err := m.UpdateThreshold(ctx, &statsapi.Summary{}); err == nil {
		t.Error("an empty summary gave no error")
	}
	cancel()
	await(t, ended, "Start did not end with its context")
	if got := calls.Load(); got != 2 {
		t.Errorf("%d calls", got)
	}
}

func await[T any](t *testing.T, events <-chan T, complaint string) {
	t.Helper()
	select {
	case <-events:
	case <-time.After(10 * time.Second):
		t.Fatal(complaint)
	}
}
