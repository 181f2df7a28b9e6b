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

// Package soak lets managers live for simulated days, and start and end again
// and again, and looks for what they leave behind: goroutines, descriptors,
// memory.
package soak

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/utils/clock"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.GatesByDefault()); err != nil {
		panic(err)
	}
	metrics.Register()
	goleak.VerifyTestMain(m)
}

// heap is what is in use after a collection, in MiB.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapInuse) / (1 << 20)
}

// TestSimulatedDays: two days of a node that is looked at, with a leak that comes
// close to its threshold and one that crosses it.
func TestSimulatedDays(t *testing.T) {
	spec, err := simnode.Parse(`node
node for=48h stats-every=10s
hard memory.available<1Gi
hard nodefs.available<10%
pod steady memory=4Gi volume=10Gi
pod leak memory=1Gi+100Ki/s
`)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	lines := simnode.Live(t, spec, simnode.Ours)
	if grown := heap() - before; grown > 20 {
		t.Errorf("%.1f MiB more than before", grown)
	}
	kills := 0
	for _, line := range lines {
		if strings.Contains(line, "  kill leak") {
			kills++
		}
	}
	if kills != 1 {
		t.Errorf("the leak was killed %d times:\n%s", kills, strings.Join(lines, "\n"))
	}
}

// TestStartAndEnd starts a manager with the machine's own probes a hundred times.
func TestStartAndEnd(t *testing.T) {
	spec, err := simnode.Parse("node\nhard memory.available<1Ki\nhard nodefs.available<1Ki\nhard pid.available<1\n")
	if err != nil {
		t.Fatal(err)
	}
	cycle := func() {
		ctx, cancel := context.WithCancel(t.Context())
		node := simnode.New(spec, simnode.RunTime{})
		thresholds, err := ours.ParseThresholdConfig(nil, spec.Hard, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		manager, _ := ours.NewManager(node, ours.Config{Thresholds: thresholds, PodCgroupRoot: "/"}, node.Kill, node, node, node, node.Ref, clock.RealClock{}, true)
		manager.Start(ctx, node, node.ActivePods, node.CleanedUp, time.Second)
		time.Sleep(10 * time.Millisecond)
		cancel()
	}
	cycle()
	time.Sleep(time.Second)
	files, goroutines, memory := descriptors(t), runtime.NumGoroutine(), heap()
	for range 100 {
		cycle()
	}
	// Everything ends within a second of its context (#138854).
	time.Sleep(time.Second)
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
	if now := descriptors(t); now > files {
		t.Errorf("%d descriptors, %d before", now, files)
	}
	if now := heap(); now > memory+5 {
		t.Errorf("%.1f MiB, %.1f before", now, memory)
	}
}

// descriptors counts what is open; 0 where that cannot be seen.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return 0
	}
	return len(open)
}
