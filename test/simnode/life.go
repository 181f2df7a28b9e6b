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

package simnode

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/kubernetes/pkg/kubelet/server/stats"
	"k8s.io/utils/clock"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Starter makes a manager of a node through the exported API alone, and starts it.
type Starter func(context.Context, *Node) (Pressure, lifecycle.PodAdmitHandler, error)

// Upstream starts the manager of the Kubernetes that go.mod requires.
func Upstream(ctx context.Context, n *Node) (Pressure, lifecycle.PodAdmitHandler, error) {
	s := n.Spec
	thresholds, err := eviction.ParseThresholdConfig(enforced(s), s.Hard, s.Soft, s.Grace, s.MinReclaim)
	if err != nil {
		return nil, nil, err
	}
	config := eviction.Config{PressureTransitionPeriod: s.Node.Transition, MaxPodGracePeriodSeconds: s.Node.MaxGrace, Thresholds: thresholds}
	seen := upstreamsView(ctx, n)
	manager, handler := eviction.NewManager(seen, config, n.Kill, n, n, n, n.Ref, clock.RealClock{}, !s.Node.NoLimits)
	// With nothing to watch its loop does nothing, and has nothing to end by.
	if len(thresholds) > 0 || !s.Node.NoLimits {
		manager.Start(ctx, seen, n.ActivePods, n.CleanedUp, s.Node.Interval)
	}
	return manager, handler, nil
}

// view is what a manager asks of a node in every pass.
type view interface {
	stats.SummaryProvider
	eviction.DiskInfoProvider
}

// Ours starts the manager of this project.
func Ours(ctx context.Context, n *Node) (Pressure, lifecycle.PodAdmitHandler, error) {
	s := n.Spec
	thresholds, err := ours.ParseThresholdConfig(enforced(s), s.Hard, s.Soft, s.Grace, s.MinReclaim)
	if err != nil {
		return nil, nil, err
	}
	config := ours.Config{PressureTransitionPeriod: s.Node.Transition, MaxPodGracePeriodSeconds: s.Node.MaxGrace, Thresholds: thresholds, Probe: n.Probe(), JournalSink: n.Journal}
	manager, handler := ours.NewManager(n, config, n.Kill, n, n, n, n.Ref, clock.RealClock{}, !s.Node.NoLimits)
	manager.Start(ctx, n, n.ActivePods, n.CleanedUp, s.Node.Interval)
	return manager, handler, nil
}

// enforced is the kubelet's enforceNodeAllocatable.
func enforced(s Spec) []string {
	if s.Node.GuardAllocatable {
		return []string{"pods"}
	}
	return nil
}

// quiet is a context whose logger says nothing.
var quiet = klog.NewContext(context.Background(), logr.Discard())

// Live lets a node live its story under a manager, in simulated time, and
// returns what happened. The kubelet's metrics must be registered; they are
// global, so that no two nodes may live side by side.
func Live(t *testing.T, spec Spec, start Starter) (trace []string) {
	before := counted()
	synctest.Test(t, func(*testing.T) {
		ctx, cancel := context.WithCancel(quiet)
		n := New(spec, RunTime{})
		// Time stands still once this function returns, and upstream's loop may
		// have a kill, two collections and a clean-up to finish.
		defer time.Sleep(5 * time.Minute)
		defer cancel()
		manager, handler, err := start(ctx, n)
		if err != nil {
			trace = []string{"no manager"}
			return
		}
		go n.Watch(ctx, manager, handler, func() string { return counted().since(before, spec.Node) })
		time.Sleep(spec.Node.For)
		if utilfeature.DefaultFeatureGate.Enabled("EvictionConcurrentKills") {
			n.Settle()
		}
		trace = n.TraceUntil(spec.Node.For)
	})
	return trace
}

// counts are what the kubelet's metrics say of evictions.
type counts map[string]float64

// counted returns the evictions by cause, and how many ages of stats were
// observed by signal.
func counted() counts {
	now := counts{}
	for _, cause := range append(observe.Signals(), decide.CauseEmptyDirLimit, decide.CausePodLimit, decide.CauseContainerLimit) {
		evictions, err := testutil.GetCounterMetricValue(metrics.Evictions.WithLabelValues(string(cause)))
		if err != nil {
			panic(err)
		}
		now[string(cause)] = evictions
	}
	for _, signal := range observe.Signals() {
		ages, err := testutil.GetHistogramMetricCount(metrics.EvictionStatsAge.WithLabelValues(string(signal)))
		if err != nil {
			panic(err)
		}
		now[ageOf(string(signal))] = float64(ages)
	}
	return now
}

func ageOf(signal string) string { return "age-of-" + signal }

// since writes by how much the counts have grown. Thresholds of the container
// filesystem are twins of those on the filesystem that it is part of: upstream
// takes either of two twins at random, and does the same for both. So they are
// counted as one.
func (c counts) since(before counts, layout NodeSpec) string {
	twin := "nodefs."
	if layout.DedicatedImageFs && !layout.SplitContainerFs {
		twin = "imagefs."
	}
	grown := counts{}
	for what, now := range c {
		if by := now - before[what]; by != 0 {
			if rest, follows := strings.CutPrefix(strings.TrimPrefix(what, ageOf("")), "containerfs."); follows {
				what = strings.TrimSuffix(what, "containerfs."+rest) + twin + rest
			}
			grown[what] += by
		}
	}
	return grown.String()
}

func (c counts) String() string {
	if len(c) == 0 {
		return ""
	}
	return strings.Trim(strings.TrimPrefix(fmt.Sprint(map[string]float64(c)), "map"), "[]")
}

// GatesByDefault returns the project's feature gates that are on by default, on.
func GatesByDefault() map[string]bool {
	gates := AllGatesOff()
	for _, gate := range []string{"EvictionPromptWake", "EvictionConcurrentKills", "EvictionEvidence", "EvictionTargetedReclaim", "EvictionJournal"} {
		gates[gate] = true
	}
	return gates
}

// AllGatesOff returns all of the project's feature gates, each switched off.
func AllGatesOff() map[string]bool {
	return map[string]bool{
		"EvictionPromptWake": false, "EvictionConcurrentKills": false, "EvictionEvidence": false, "EvictionTargetedReclaim": false,
		"EvictionJournal": false, "EvictionReclaimableMemory": false, "EvictionPressureSignals": false,
	}
}
