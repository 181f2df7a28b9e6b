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
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe/machine"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// carryOut starts what EvictionConcurrentKills decided, and waits for none of it.
func (m *manager) carryOut(ctx context.Context, decision decide.Decision, seen observe.Snapshot) {
	logger := klog.FromContext(ctx)
	for _, eviction := range decision.Uncounted {
		metrics.Evictions.WithLabelValues(eviction.Cause).Inc()
	}
	for i := range decision.Shortages {
		m.announce(ctx, &decision.Shortages[i], seen)
	}
	kills := act.Kills{Kill: m.kill, Recorder: m.recorder, Reports: (*reports)(m)}
	if m.config.PodCgroupPath != nil {
		kills.Hold = func(pod *v1.Pod) (func() error, error) { return machine.Linux.HoldMemory(m.config.PodCgroupPath(pod)) }
	}
	for _, kill := range decision.Kills {
		kills.Start(ctx, kill, m.cleanedUp)
	}
	for _, order := range decision.Reclaims {
		reclaimWanted.WithLabelValues(string(order.Signal)).Add(float64(order.Wanted))
		logger.Info("Reclaiming", "steps", stepNames(order.Steps), "signal", order.Signal, "wanted", observe.Quantity(order.Signal, order.Wanted))
		go m.reclaim(ctx, order)
	}
	m.mu.RLock()
	killsInFlight.Set(float64(len(m.state.Ledger.Entries)))
	m.mu.RUnlock()
}

// reclaimTimeout bounds the steps of a reclaim. A runtime that has to delete
// hundreds of images takes minutes.
const reclaimTimeout = 10 * time.Minute

// reclaimSettle is how long after a step it is judged: containerd deletes the layer
// of a container that was removed about a tenth of a second later (2.4, seen on
// overlayfs). Until then the next step would seem to be needed.
const reclaimSettle = 150 * time.Millisecond

// reclaim takes the steps of an order, and lets the loop see what came of them.
func (m *manager) reclaim(ctx context.Context, order decide.ReclaimOrder) {
	bounded, cancel := context.WithTimeout(ctx, reclaimTimeout)
	defer cancel()
	claimed, started := int64(0), m.clock.Now()
	for _, step := range order.Steps {
		freer, stops := m.images.(act.ImageFreer)
		if step != decide.UnusedImages || !stops || !utilfeature.DefaultFeatureGate.Enabled(evictionTargetedReclaim) {
			act.Reclaim(bounded, []decide.ReclaimStep{step}, m.collectors)
			continue
		}
		freed, err := freer.FreeUnusedImages(bounded, func(freed int64) bool { return m.reclaimed(bounded, order, freed) })
		if err != nil {
			klog.FromContext(ctx).Error(err, "Could not free all of the images that were to go", "freed", freed)
		}
		claimed += freed
	}
	if claimed > 0 || slices.Contains(order.Steps, decide.DeadContainers) {
		select {
		case <-bounded.Done():
		case <-time.After(reclaimSettle):
		}
	}
	m.tellReclaimed(bounded, order, started, claimed)
	m.mu.Lock()
	m.state.Reclaims = m.state.Reclaims.Ended(order.Filesystem, claimed, m.clock.Now())
	m.mu.Unlock()
	m.wakeForOutcome()
}

// tellReclaimed says in the log and an event what came of a reclaim.
func (m *manager) tellReclaimed(ctx context.Context, order decide.ReclaimOrder, started time.Time, claimed int64) {
	freed := "an unknown amount"
	outcome := journal.ReclaimedOutcome(order, claimed, nil)
	if now, found := m.look(ctx, order.Signal); found {
		amount := max(0, now.Available-order.Available)
		freed = observe.Quantity(order.Signal, amount).String()
		outcome = journal.ReclaimedOutcome(order, claimed, &amount)
		reclaimFreed.WithLabelValues(string(order.Signal)).Add(float64(amount))
	}
	if m.journal != nil {
		now := m.clock.Now()
		outcome.Took = journal.Seconds(now.Sub(started))
		m.journal.Outcome(now, outcome)
	}
	traits, _ := observe.TraitsOf(order.Signal)
	wanted := observe.Quantity(order.Signal, order.Wanted)
	klog.FromContext(ctx).Info("Reclaimed", "steps", stepNames(order.Steps), "signal", order.Signal, "wanted", wanted, "freed", freed, "claimedBytes", claimed)
	m.recorder.Eventf(m.nodeRef, v1.EventTypeNormal, "EvictionReclaimed", "Deleted what is not used (%s) to reclaim %s: %s wanted, %s freed so far", stepNames(order.Steps), traits.Resource, wanted, freed)
}

func stepNames(steps []decide.ReclaimStep) string {
	names := make([]string, 0, len(steps))
	for _, step := range steps {
		names = append(names, step.String())
	}
	return strings.Join(names, ", ")
}

// look returns a fresh observation of a signal.
func (m *manager) look(ctx context.Context, signal evictionapi.Signal) (observe.Observation, bool) {
	summary, err := m.summary(ctx)
	if err != nil {
		return observe.Observation{}, false
	}
	now, found := observe.FromSummary(summary, observe.PlatformMemory).Observations[signal]
	return now, found && now.Plausible()
}

// reclaimed says whether the goal of an order is reached: by what the runtime
// says, or by what a fresh summary shows, which alone knows of inodes.
func (m *manager) reclaimed(ctx context.Context, order decide.ReclaimOrder, freed int64) bool {
	traits, _ := observe.TraitsOf(order.Signal)
	if traits.Resource != observe.ResourceInodes && freed >= order.Wanted {
		return true
	}
	if freed == 0 {
		return false // as little as when it was ordered
	}
	now, found := m.look(ctx, order.Signal)
	return found && now.Available-order.Available >= order.Wanted
}

// announceEvery is the least time between two events that say that pods are no
// remedy: as long as upstream's interval.
const announceEvery = 10 * time.Second

// announce tells of a shortage that is acted upon, or cannot be.
func (m *manager) announce(ctx context.Context, shortage *decide.Shortage, seen observe.Snapshot) {
	signal := shortage.Threshold.Signal
	logger := klog.FromContext(ctx).WithValues("resource", shortage.Resource, "signal", signal)
	traits, _ := observe.TraitsOf(signal)
	quantity := func(n int64) string {
		if traits.Stall != observe.NoStall {
			return observe.Percent(n)
		}
		return observe.Quantity(signal, n).String()
	}
	message := fmt.Sprintf("Attempting to reclaim %s", shortage.Resource)
	acts := len(shortage.Victims) > 0 || len(shortage.Reclaim) > 0
	switch {
	case acts:
		logger.Info("Attempting to reclaim a starved resource", "wanted", quantity(shortage.Wanted), "pending", quantity(shortage.Pending))
	case !shortage.Outside || !m.mayAnnounce(signal):
		return
	case traits.Stall != observe.NoStall:
		message += fmt.Sprintf(": no pod is evicted, none of those that may be accounts for the %s of the time that is lost", quantity(shortage.Used))
		logger.Info("No pod is evicted, the stall is not that of those that may be", "stall", quantity(shortage.Used))
	default:
		message += fmt.Sprintf(": no pod is evicted, those that may be hold %s of the %s in use", quantity(shortage.Held), quantity(shortage.Used))
		logger.Info("No pod is evicted, the usage is outside of those that may be", "held", quantity(shortage.Held), "used", quantity(shortage.Used), "wanted", quantity(shortage.Wanted))
	}
	m.recorder.Event(m.nodeRef, v1.EventTypeWarning, "EvictionThresholdMet", message)
	if len(shortage.Victims) == 0 {
		return
	}
	ranked := make([]*v1.Pod, 0, len(shortage.Candidates))
	for _, candidate := range shortage.Candidates {
		ranked = append(ranked, candidate.Pod)
	}
	logger.Info("Ranked the pods for eviction", "pods", klog.KObjSlice(ranked), "victims", len(shortage.Victims))
	for _, t := range shortage.Starved {
		if at := seen.Observations[t.Signal].Time; !at.IsZero() {
			metrics.EvictionStatsAge.WithLabelValues(string(t.Signal)).Observe(metrics.SinceInSeconds(at))
		}
	}
}

// mayAnnounce says whether the last time is long enough ago.
func (m *manager) mayAnnounce(signal evictionapi.Signal) bool {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, found := m.announced[signal]; found && now.Sub(last) < announceEvery {
		return false
	}
	if m.announced == nil {
		m.announced = map[evictionapi.Signal]time.Time{}
	}
	m.announced[signal] = now
	return true
}

// wakeForOutcome lets the loop see what has changed.
func (m *manager) wakeForOutcome() {
	if m.prompt != nil {
		m.prompt.prober.Hurry()
	}
	m.waker.Wake(wake.Wake{Reason: wake.Outcome, At: time.Now()})
}

// reports is the manager as the kills see it.
type reports manager

// Killed counts an eviction once, when its kill has succeeded.
func (r *reports) Killed(eviction decide.Eviction, err error) {
	m := (*manager)(r)
	uid := eviction.Pod.UID
	m.mu.Lock()
	entry, known := m.state.Ledger.Of(uid)
	now := m.clock.Now()
	if err == nil {
		m.state.Ledger = m.state.Ledger.Killed(uid, now)
	} else {
		m.state.Ledger = m.state.Ledger.Failed(uid, now)
	}
	m.mu.Unlock()
	if err == nil && known && !entry.Counted {
		metrics.Evictions.WithLabelValues(eviction.Cause).Inc()
	}
	m.tellKilled(eviction, entry.DecidedAt, now, err)
	m.wakeForOutcome()
}

// CleanedUp notes that a pod has given everything back.
func (r *reports) CleanedUp(uid types.UID) {
	m := (*manager)(r)
	m.mu.Lock()
	now := m.clock.Now()
	entry, known := m.state.Ledger.Of(uid)
	m.state.Ledger = m.state.Ledger.CleanedUp(uid, now)
	m.mu.Unlock()
	if known {
		m.tellOutcome(journal.OutcomeCleanedUp, entry.Eviction, entry.DecidedAt, now, nil)
	}
	m.wakeForOutcome()
}

// Slow counts a kill that hangs.
func (r *reports) Slow(eviction decide.Eviction) {
	m := (*manager)(r)
	slowKills.Inc()
	m.mu.RLock()
	entry, _ := m.state.Ledger.Of(eviction.Pod.UID)
	m.mu.RUnlock()
	m.tellOutcome(journal.OutcomeKillSlow, eviction, entry.DecidedAt, m.clock.Now(), nil)
}
