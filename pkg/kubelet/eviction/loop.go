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
	"runtime"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// Start runs passes in the background until the context ends.
func (m *manager) Start(ctx context.Context, diskInfoProvider DiskInfoProvider, podFunc ActivePodsFunc, podCleanedUpFunc PodCleanedUpFunc, monitoringInterval time.Duration) {
	klog.FromContext(ctx).Info("Starting the eviction manager", "interval", monitoringInterval)
	registerMetrics()
	m.cleanedUp = podCleanedUpFunc
	if utilfeature.DefaultFeatureGate.Enabled(evictionJournal) {
		m.startJournal(ctx)
	}
	if utilfeature.DefaultFeatureGate.Enabled(evictionPromptWake) {
		m.startProbes(ctx)
	}
	if m.config.KernelMemcgNotification || runtime.GOOS == "windows" {
		m.startNotifiers(ctx, diskInfoProvider, podFunc)
	}
	go m.loop(ctx, diskInfoProvider, podFunc, podCleanedUpFunc, monitoringInterval)
}

// startNotifiers watches each memory threshold. A crossing wakes the loop; with
// EvictionPromptWake off it runs a pass beside it, as upstream does.
func (m *manager) startNotifiers(ctx context.Context, diskInfo DiskInfoProvider, pods ActivePodsFunc) {
	logger := klog.FromContext(ctx)
	crossed := func(message string) {
		logger.Info(message)
		why := wake.Wake{Reason: wake.Memcg, At: time.Now()}
		if m.prompt != nil {
			m.waker.Wake(why)
		} else if _, err := m.pass(ctx, why, diskInfo, pods); err != nil {
			logger.Error(err, "A pass failed")
		}
	}
	for _, t := range m.config.Thresholds {
		if t.Signal != evictionapi.SignalMemoryAvailable && t.Signal != evictionapi.SignalAllocatableMemoryAvailable {
			continue
		}
		notifier, err := NewMemoryThresholdNotifier(logger, t, m.config.PodCgroupRoot, &CgroupNotifierFactory{}, crossed)
		if err != nil {
			logger.Error(err, "Could not watch a memory threshold, the loop alone does", "signal", t.Signal)
			continue
		}
		go notifier.Start(ctx)
		m.mu.Lock()
		m.notifiers = append(m.notifiers, notifier)
		m.mu.Unlock()
	}
}

// loop runs pass after pass: at once when pods were evicted and are cleaned up,
// else when it is woken or, at the latest, after the interval. The interval is
// the runtime's time, as it is upstream, whatever clock the manager has.
func (m *manager) loop(ctx context.Context, diskInfo DiskInfoProvider, pods ActivePodsFunc, cleanedUp PodCleanedUpFunc, interval time.Duration) {
	logger := klog.FromContext(ctx)
	why := wake.Wake{Reason: wake.Start, At: time.Now()}
	for ctx.Err() == nil {
		evicted, err := m.pass(ctx, why, diskInfo, pods)
		if err != nil {
			logger.Error(err, "A pass failed")
		}
		if len(evicted) > 0 {
			act.AwaitCleanup(ctx, evicted, cleanedUp, m.clock)
			why = wake.Wake{Reason: wake.Eviction, At: time.Now()}
			continue
		}
		after, due := m.nextPass(interval)
		why = m.waker.Wait(ctx, after, due)
	}
	logger.Info("The eviction manager has stopped", "err", ctx.Err())
}

// overdue is the pause before a grace period that is over is looked at again.
const overdue = time.Second

// awaited is the pause before a pass that looks for a sample newer than a reclaim.
const awaited = 50 * time.Millisecond

// nextPass returns when the next pass is due unless something wakes the loop, and why.
func (m *manager) nextPass(interval time.Duration) (time.Duration, wake.Reason) {
	after, due := interval, wake.Interval
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.state.Reclaims.Awaiting() && awaited < after {
		after, due = awaited, wake.Outcome
	}
	if m.prompt == nil {
		return after, due
	}
	if m.prompt.trend < after {
		after, due = m.prompt.trend, wake.Trend
	}
	if grace, running := m.state.Standings.NextGrace(m.clock.Now()); running && grace < after {
		if grace <= 0 {
			// The pass that should have ended it could not read the node's stats.
			grace = overdue
		}
		after, due = min(after, grace), wake.Grace
	}
	return after, due
}
