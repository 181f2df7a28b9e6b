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

package eviction_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// The first pass that has a summary logs the thresholds in absolute numbers, and
// what is hardly meant; the passes after it do not (cases 32 and 34).
func TestIntroduction(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	inBubble(t, func(ctx context.Context, t *testing.T) {
		ctx = klog.NewContext(ctx, logger)
		thresholds, err := eviction.ParseThresholdConfig([]string{"pods"}, map[string]string{"memory.available": "5%"},
			map[string]string{"memory.available": "500Mi"}, map[string]string{"memory.available": "1m"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		k := &kubelet{}
		calls := 0
		k.summary = func(context.Context) (*statsapi.Summary, error) {
			if calls++; calls == 1 {
				return nil, context.DeadlineExceeded
			}
			return &statsapi.Summary{Node: statsapi.NodeStats{
				Memory: &statsapi.MemoryStats{AvailableBytes: number(60 << 30), WorkingSetBytes: number(4 << 30)},
				Fs:     &statsapi.FsStats{AvailableBytes: number(90 << 30), CapacityBytes: number(100 << 30)},
			}}, nil
		}
		manager, _ := eviction.NewManager(k, eviction.Config{Thresholds: thresholds, PressureTransitionPeriod: 5 * time.Minute}, k.killPod, k, k,
			&record.FakeRecorder{}, &v1.ObjectReference{Kind: "Node"}, clock.RealClock{}, true)
		manager.Start(ctx, k, func() []*v1.Pod { return nil }, func(*v1.Pod) bool { return true }, 10*time.Second)
		let(time.Minute)
	})
	for _, want := range []string{
		`"Effective eviction thresholds" "thresholds"=["hard memory.available<5% (3.2Gi)" "soft memory.available<500Mi for 1m0s" "hard allocatableMemory.available<5%"] "capacities"=["memory.available=64Gi" "nodefs.available=100Gi"`,
		`"finding"="soft-below-hard"`,
		`"finding"="unguarded" "severity"="warning" "problem"="no threshold watches nodefs.available"`,
		`"finding"="no-pod-grace"`,
	} {
		if n := count(lines, want); n != 1 {
			t.Errorf("%d lines say %s:\n%s", n, want, strings.Join(lines, "\n"))
		}
	}
}

func count(lines []string, part string) int {
	n := 0
	for _, line := range lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}
