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

package eviction

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// startJournal begins to keep records, and takes up those of the kubelet before.
func (m *manager) startJournal(ctx context.Context) {
	logger := klog.FromContext(ctx)
	causes := slices.DeleteFunc(observe.Signals(), func(signal evictionapi.Signal) bool {
		traits, _ := observe.TraitsOf(signal)
		return traits.Extra && !utilfeature.DefaultFeatureGate.Enabled(evictionPressureSignals)
	})
	for _, cause := range append(causes, decide.CauseEmptyDirLimit, decide.CausePodLimit, decide.CauseContainerLimit) {
		// A rate needs a beginning: visible at 0 (kubernetes-mixin#1014).
		metrics.Evictions.WithLabelValues(string(cause)).Add(0)
	}
	options := journal.Options{Sink: m.config.JournalSink, Kubelet: version.Get().GitVersion, OnDrop: droppedRecords.Inc}
	if m.nodeRef != nil {
		options.Node = m.nodeRef.Name
	}
	var file *journal.File
	if directory := m.config.JournalDirectory; directory != "" && options.Sink == nil {
		m.restore(logger, directory)
		file = journal.OpenFile(directory)
		options.Sink = file
	}
	m.meters.follow = true
	m.journal = journal.New(options)
	logger.Info("Keeping a record of each pass", "in", m.journal.String())
	go func() {
		m.journal.Run(ctx)
		if file != nil {
			if err := file.Close(); err != nil {
				logger.Error(err, "Could not close the journal")
			}
		}
	}()
}

// restore takes up the state of the kubelet before, for the first step.
func (m *manager) restore(logger klog.Logger, directory string) {
	state, at, found, err := journal.Restore(directory, m.clock.Now())
	switch {
	case err != nil:
		logger.Error(err, "Could not go on from the journal, starting without")
	case found:
		m.mu.Lock()
		m.restored = &state
		// Until the first step pods are admitted by what the node was like.
		m.state.Conditions = state.Conditions
		m.mu.Unlock()
		logger.Info("Going on from the journal", "lastPass", at, "inFlight", len(state.Ledger.Entries), "thresholds", len(state.Standings), "conditions", state.Conditions)
	}
}

// tell records a pass and shows it in the metrics.
func (m *manager) tell(why wake.Wake, t taken, policy decide.Policy, pods []*v1.Pod, seen observe.Snapshot) {
	m.meters.pass(why, t, policy)
	if m.journal == nil {
		return
	}
	pass := &journal.Pass{
		Now: t.now, Reason: string(why.Reason), WokenAt: why.At, Crossed: why.Seen,
		Policy: policy, Before: t.before, After: t.after, Observations: seen.Observations, Decision: t.decision,
	}
	if m.prompt != nil {
		pass.Probed = m.prompt.prober.Latest()
	}
	if journal.NeedsPods(t.before, t.decision) {
		// Copied: the slice may be reordered, and the snapshot's index is used again.
		pass.Pods = append(make([]*v1.Pod, 0, len(pods)), pods...)
		pass.Stats = make([]*statsapi.PodStats, 0, len(pods))
		for _, pod := range pods {
			pass.Stats = append(pass.Stats, seen.PodStats(pod.UID))
		}
	}
	m.journal.Pass(pass)
}

// evict evicts a pod and waits for the kill, as upstream does.
func (m *manager) evict(ctx context.Context, eviction decide.Eviction) {
	decidedAt := m.clock.Now()
	err := act.Evict(ctx, eviction, m.kill, m.recorder)
	m.tellKilled(eviction, decidedAt, m.clock.Now(), err)
}

func (m *manager) tellKilled(eviction decide.Eviction, decidedAt, now time.Time, err error) {
	kind := journal.OutcomeKilled
	if err != nil {
		kind = journal.OutcomeKillFailed
	}
	m.tellOutcome(kind, eviction, decidedAt, now, err)
}

// tellOutcome records what came of a kill.
func (m *manager) tellOutcome(kind journal.OutcomeKind, eviction decide.Eviction, decidedAt, now time.Time, err error) {
	if m.journal == nil {
		return
	}
	outcome := journal.KillOutcome(kind, eviction.Pod, err)
	if !decidedAt.IsZero() {
		outcome.Took = journal.Seconds(now.Sub(decidedAt))
	}
	m.journal.Outcome(now, outcome)
}
