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
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// stepTime is the time of a single thread of events: sleeping moves it on.
type stepTime struct {
	now time.Time
	// nextSample is when onSample is due next.
	nextSample time.Time
	onSample   func()
}

func (s *stepTime) Now() time.Time { return s.now }

func (s *stepTime) Sleep(d time.Duration) {
	until := s.now.Add(d)
	for !s.nextSample.After(until) {
		s.now = s.nextSample
		s.nextSample = s.nextSample.Add(sampleEvery)
		s.onSample()
	}
	s.now = until
}

// LiveByStep lets a node live its story under the pure step alone: what a
// manager does between two steps is written out here in its plainest form,
// without goroutines, clocks or locks. The trace is that of Live, but for whom
// the node refuses, which is not the step's business.
func LiveByStep(spec Spec) ([]string, error) {
	thresholds, err := ours.ParseThresholdConfig(enforced(spec), spec.Hard, spec.Soft, spec.Grace, spec.MinReclaim)
	if err != nil {
		return nil, err
	}
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	timeline := &stepTime{now: begin, nextSample: begin.Add(sampleAt)}
	l := &stepLife{
		Node:     New(spec, timeline),
		timeline: timeline,
		policy: decide.Policy{
			Thresholds:               thresholds,
			Layout:                   observe.Layout{DedicatedImageFs: spec.Node.DedicatedImageFs, SeparateContainerFs: spec.Node.SplitContainerFs},
			PressureTransitionPeriod: spec.Node.Transition,
			MaxPodGracePeriodSeconds: spec.Node.MaxGrace,
			LocalStorageLimits:       !spec.Node.NoLimits,
			PodLevelResources:        true,
		},
		counts: counts{},
	}
	l.lastStanding = l.standing()
	timeline.onSample = l.sample
	for l.Elapsed() < spec.Node.For {
		evicted := l.pass()
		if len(evicted) == 0 {
			timeline.Sleep(spec.Node.Interval)
		} else {
			l.awaitCleanup(evicted)
		}
	}
	return l.TraceUntil(spec.Node.For), nil
}

type stepLife struct {
	*Node
	timeline *stepTime
	policy   decide.Policy
	state    decide.State
	// disksKnown says that the layout has been asked for. The thresholds of the
	// container filesystem join after the pass that asked.
	disksKnown               bool
	counts                   counts
	lastCounts, lastStanding string
}

func (l *stepLife) pass() []*v1.Pod {
	ctx := quiet
	if len(l.policy.Thresholds) == 0 && !l.policy.LocalStorageLimits {
		return nil
	}
	policy := l.policy
	if !l.disksKnown {
		if _, err := l.HasDedicatedImageFs(ctx); err != nil {
			return nil
		}
		l.disksKnown = true
		l.policy.Thresholds, _ = threshold.WithContainerFs(policy.Thresholds, policy.Layout)
	}
	pods := l.ActivePods()
	summary, err := l.Get(ctx, true)
	if err != nil {
		return nil
	}
	seen := observe.FromSummary(summary, observe.MemorySource{})
	var decision decide.Decision
	l.state, decision = decide.Step(policy, l.state, pods, seen, l.timeline.Now())

	var evicted []*v1.Pod
	for _, eviction := range decision.OverLimit {
		evicted = append(evicted, l.evict(eviction))
	}
	if len(evicted) > 0 || decision.Shortage == nil {
		return evicted
	}
	l.Eventf(l.Ref, v1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim %s", decision.Shortage.Resource)
	if len(decision.Shortage.Reclaim) > 0 {
		act.Reclaim(ctx, decision.Shortage.Reclaim, act.Collectors{
			decide.DeadContainers: l.DeleteAllUnusedContainers,
			decide.UnusedImages:   l.DeleteUnusedImages,
		})
		after, err := l.Get(ctx, true)
		if err == nil && decide.Resolved(l.policy, observe.FromSummary(after, observe.MemorySource{}).Observations) {
			return nil
		}
	}
	for i, candidate := range decision.Shortage.Candidates {
		pods[i] = candidate.Pod
	}
	for _, t := range decision.Shortage.Starved {
		if len(pods) > 0 && !seen.Observations[t.Signal].Time.IsZero() {
			l.counts[ageOf(string(t.Signal))]++
		}
	}
	if decision.Shortage.Victim == nil {
		return nil
	}
	return []*v1.Pod{l.evict(*decision.Shortage.Victim)}
}

func (l *stepLife) evict(eviction decide.Eviction) *v1.Pod {
	act.Evict(quiet, eviction, l.Kill, l)
	l.counts[eviction.Cause]++
	return eviction.Pod
}

// awaitCleanup looks every second, for half a minute at most.
func (l *stepLife) awaitCleanup(pods []*v1.Pod) {
	for range 30 {
		l.timeline.Sleep(time.Second)
		if !slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return !l.CleanedUp(pod) }) {
			return
		}
	}
}

func (l *stepLife) standing() string {
	has := func(condition v1.NodeConditionType) bool { return slices.Contains(l.state.Conditions, condition) }
	return Standing(has(v1.NodeMemoryPressure), has(v1.NodeDiskPressure), has(v1.NodePIDPressure), nil, "", "")
}

func (l *stepLife) sample() {
	if now := l.counts.since(nil, l.Spec.Node); now != l.lastCounts {
		l.Note("counted %s", now)
		l.lastCounts = now
	}
	if now := l.standing(); now != l.lastStanding {
		l.Note("%s", now)
		l.lastStanding = now
	}
}
