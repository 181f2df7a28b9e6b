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

package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/utils/clock"

	"k8s.io/component-base/metrics/testutil"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// starter makes a manager of a node through the exported API alone, and starts it.
type starter func(context.Context, *simnode.Node) (simnode.Pressure, lifecycle.PodAdmitHandler, error)

func startUpstream(ctx context.Context, n *simnode.Node) (simnode.Pressure, lifecycle.PodAdmitHandler, error) {
	s := n.Spec
	thresholds, err := eviction.ParseThresholdConfig(enforced(s), s.Hard, s.Soft, s.Grace, s.MinReclaim)
	if err != nil {
		return nil, nil, err
	}
	config := eviction.Config{PressureTransitionPeriod: s.Node.Transition, MaxPodGracePeriodSeconds: s.Node.MaxGrace, Thresholds: thresholds}
	manager, handler := eviction.NewManager(n, config, n.Kill, n, n, n, n.Ref, clock.RealClock{}, !s.Node.NoLimits)
	manager.Start(ctx, n, n.ActivePods, n.CleanedUp, s.Node.Interval)
	return manager, handler, nil
}

func startOurs(ctx context.Context, n *simnode.Node) (simnode.Pressure, lifecycle.PodAdmitHandler, error) {
	s := n.Spec
	thresholds, err := ours.ParseThresholdConfig(enforced(s), s.Hard, s.Soft, s.Grace, s.MinReclaim)
	if err != nil {
		return nil, nil, err
	}
	config := ours.Config{PressureTransitionPeriod: s.Node.Transition, MaxPodGracePeriodSeconds: s.Node.MaxGrace, Thresholds: thresholds}
	manager, handler := ours.NewManager(n, config, n.Kill, n, n, n, n.Ref, clock.RealClock{}, !s.Node.NoLimits)
	manager.Start(ctx, n, n.ActivePods, n.CleanedUp, s.Node.Interval)
	return manager, handler, nil
}

// enforced is the kubelet's enforceNodeAllocatable.
func enforced(s simnode.Spec) []string {
	if s.Node.GuardAllocatable {
		return []string{"pods"}
	}
	return nil
}

// live lets a node live its story under a manager, in simulated time, and
// returns what happened.
func live(t *testing.T, spec simnode.Spec, start starter) (trace []string) {
	before := evictions()
	synctest.Test(t, func(*testing.T) {
		ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger(logr.Discard())))
		n := simnode.New(spec, simnode.RunTime{})
		// Time stands still once this function returns, and upstream's loop may
		// have a kill, two collections and a clean-up to finish.
		defer time.Sleep(5 * time.Minute)
		defer cancel()
		manager, handler, err := start(ctx, n)
		if err != nil {
			trace = []string{"no manager"}
			return
		}
		go n.Watch(ctx, manager, handler, func() string { return evictionsSince(before, spec.Node) })
		time.Sleep(spec.Node.For)
		trace = n.Trace()
	})
	return trace
}

// evictionsSince writes by how much kubelet_evictions has grown. Thresholds of
// the container filesystem are twins of those on the filesystem that it is part
// of: upstream takes either of two twins at random, and does the same for both.
// So they are counted as one.
func evictionsSince(before []float64, layout simnode.NodeSpec) string {
	twin := "nodefs."
	if layout.DedicatedImageFs && !layout.SplitContainerFs {
		twin = "imagefs."
	}
	grown := map[string]float64{}
	for i, now := range evictions() {
		if by := now - before[i]; by != 0 {
			grown[strings.Replace(causes[i], "containerfs.", twin, 1)] += by
		}
	}
	return fmt.Sprint(grown)
}

// causes are all labels of kubelet_evictions.
var causes = []string{
	"memory.available", "allocatableMemory.available", "pid.available",
	"nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree",
	"emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit",
}

func evictions() []float64 {
	counts := make([]float64, 0, len(causes))
	for _, cause := range causes {
		n, err := testutil.GetCounterMetricValue(metrics.Evictions.WithLabelValues(cause))
		if err != nil {
			panic(err)
		}
		counts = append(counts, n)
	}
	return counts
}
