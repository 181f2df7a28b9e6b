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
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/features"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/kubernetes/pkg/kubelet/server/stats"
	"k8s.io/utils/clock"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// manager is the edge around the pure step: it gathers what a step needs,
// keeps the state between steps, and has the decision carried out.
type manager struct {
	config             Config
	localStorageLimits bool
	// written are the thresholds as the kubelet gave them; introduced is done once
	// they have been logged.
	written    []evictionapi.Threshold
	introduced sync.Once
	clock      clock.WithTicker
	summaries  stats.SummaryProvider
	kill       act.Killer
	collectors act.Collectors
	images     ImageGC
	recorder   record.EventRecorder
	nodeRef    *v1.ObjectReference
	// readers are idle *observe.Reader; a pass has one to itself.
	readers sync.Pool
	waker   *wake.Waker
	// prompt is what EvictionPromptWake adds; nil while it is off.
	prompt *prompt
	// journal keeps a record of each pass; nil while EvictionJournal is off.
	journal *journal.Journal
	// meters follow the signals for the metrics of EvictionJournal.
	meters meters
	// cleanedUp says whether a pod has given everything back; Start sets it.
	cleanedUp PodCleanedUpFunc

	// mu guards what follows. It is held for the length of a step at most,
	// never during a call that leaves the package, so that admission and node
	// status never wait for a kill.
	mu    sync.RWMutex
	state decide.State
	// restored is the state of the kubelet before this one until the first step.
	restored    *decide.State
	notifiers   []ThresholdNotifier
	refreshedAt time.Time
	// announced is when an event last said of a signal that pods are no remedy.
	announced map[evictionapi.Signal]time.Time

	// disksMu guards disks, which is nil until the layout of the filesystems is
	// known, and is held while the kubelet is asked for it.
	disksMu sync.Mutex
	disks   *disks
}

// disks is what the manager found out about the filesystems, and the thresholds
// that follow from it.
type disks struct {
	layout     observe.Layout
	thresholds []evictionapi.Threshold
}

var (
	_ Manager                   = &manager{}
	_ lifecycle.PodAdmitHandler = &manager{}
)

// NewManager returns a manager that is not started yet, and the handler that
// admits pods by its node conditions. localStorageCapacityIsolation says
// whether pods that exceed their own limits of local storage are evicted.
func NewManager(summaryProvider stats.SummaryProvider, config Config, killPodFunc KillPodFunc, imageGC ImageGC, containerGC ContainerGC, recorder record.EventRecorder,
	nodeRef *v1.ObjectReference, clock clock.WithTicker, localStorageCapacityIsolation bool,
) (Manager, lifecycle.PodAdmitHandler) {
	m := newManager(summaryProvider, config, killPodFunc, imageGC, containerGC, recorder, nodeRef, clock, localStorageCapacityIsolation)
	return m, m
}

func newManager(summaries stats.SummaryProvider, config Config, kill KillPodFunc, images ImageGC, containers ContainerGC, recorder record.EventRecorder,
	nodeRef *v1.ObjectReference, clock clock.WithTicker, localStorageLimits bool,
) *manager {
	// The slice is about to be changed, and its capacity has a part in how (see
	// threshold.WithContainerFs); the caller's stays as it is.
	own := make([]evictionapi.Threshold, len(config.Thresholds), cap(config.Thresholds))
	copy(own, config.Thresholds)
	config.Thresholds = own
	return &manager{
		config:             config,
		localStorageLimits: localStorageLimits,
		written:            slices.Clone(own),
		clock:              clock,
		summaries:          summaries,
		kill:               act.Killer(kill),
		images:             images,
		collectors: act.Collectors{
			// Not bound here: whoever only admits pods may have no collectors.
			decide.DeadContainers: func(ctx context.Context) error { return containers.DeleteAllUnusedContainers(ctx) },
			decide.UnusedImages:   func(ctx context.Context) error { return images.DeleteUnusedImages(ctx) },
		},
		recorder: recorder,
		nodeRef:  nodeRef,
		readers:  sync.Pool{New: func() any { return new(observe.Reader) }},
		waker:    wake.NewWaker(),
	}
}

// pass observes, decides and acts once, and returns the pods that it evicted;
// nil when there were none. It may run side by side with another pass, as a
// kernel notification does with the loop: only the step itself is exclusive.
func (m *manager) pass(ctx context.Context, why wake.Wake, diskInfo DiskInfoProvider, activePods ActivePodsFunc) ([]*v1.Pod, error) {
	if len(m.config.Thresholds) == 0 && !m.localStorageLimits {
		return nil, nil
	}
	logger := klog.FromContext(ctx)
	policy, firstPass, err := m.policy(ctx, diskInfo)
	if err != nil {
		return nil, err
	}

	pods := withoutNil(activePods())
	summary, err := m.summary(ctx)
	if err != nil {
		logger.Error(err, "Could not read the node's stats, nothing is decided")
		return nil, nil
	}
	m.refreshNotifiers(ctx, summary)

	watched := policy
	if firstPass {
		// Upstream takes up the thresholds of the container filesystem after its
		// first pass only.
		watched.Thresholds = m.config.Thresholds
	}
	reader := m.readers.Get().(*observe.Reader)
	defer m.readers.Put(reader)
	seen := reader.FromSummary(summary, observe.PlatformMemory)
	if m.prompt != nil {
		seen = m.freshen(ctx, why, reader, seen, pods)
		m.prompt.follow(watched.Thresholds, seen.Observations)
	}
	m.introduced.Do(func() { m.introduce(logger, policy, seen.Observations) })
	withoutUnwatched(seen.Observations, watched)
	taken := m.step(watched, pods, seen)
	decision := taken.decision
	m.tell(why, taken, watched, pods, seen)
	logDecision(logger, watched, seen, decision)
	for _, signal := range decision.Unknown {
		unknownObservations.WithLabelValues(string(signal)).Inc()
		logger.V(2).Info("Numbers that cannot be true decide nothing", "signal", signal)
	}
	if policy.ConcurrentKills {
		m.tellOfCritical(ctx, policy, decision)
		m.carryOut(ctx, decision, seen)
		m.meters.killed(why, taken, seen)
		return nil, nil
	}

	if evicted := m.enforceLimits(ctx, policy, decision); len(evicted) > 0 {
		return evicted, nil
	}
	if decision.Shortage == nil {
		return nil, nil
	}
	return m.relieve(ctx, policy, decision.Shortage, pods, seen), nil
}

// policy returns what a step is to go by, and whether the layout of the disks
// has only just been found out.
func (m *manager) policy(ctx context.Context, diskInfo DiskInfoProvider) (policy decide.Policy, first bool, err error) {
	known, first, err := m.knownDisks(ctx, diskInfo)
	if err != nil {
		return decide.Policy{}, false, err
	}
	policy = decide.Policy{
		Thresholds:               known.thresholds,
		Layout:                   known.layout,
		PressureTransitionPeriod: m.config.PressureTransitionPeriod,
		MaxPodGracePeriodSeconds: m.config.MaxPodGracePeriodSeconds,
		LocalStorageLimits:       m.localStorageLimits,
	}
	askGates(&policy)
	return policy, first, nil
}

// knownDisks returns what is known of the filesystems, and whether this call has
// found it out. Of passes side by side one asks, and the others wait for it.
func (m *manager) knownDisks(ctx context.Context, diskInfo DiskInfoProvider) (known *disks, first bool, err error) {
	m.disksMu.Lock()
	defer m.disksMu.Unlock()
	if m.disks == nil {
		m.disks, err = m.findDisks(ctx, diskInfo)
		first = true
	}
	return m.disks, first, err
}

// findDisks asks how the filesystems are divided. An error is that of the image
// filesystem, and the next pass asks again; or it says that the node is laid
// out in a way which upstream's gates do not allow, and the passes after this
// one evict nothing for a signal.
func (m *manager) findDisks(ctx context.Context, diskInfo DiskInfoProvider) (*disks, error) {
	logger := klog.FromContext(ctx)
	dedicated, err := diskInfo.HasDedicatedImageFs(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out whether images have a filesystem of their own: %w", err)
	}
	separate, err := diskInfo.HasDedicatedContainerFs(ctx)
	if err != nil {
		// A runtime that knows no container filesystem answers with an error.
		logger.Error(err, "Could not find out whether containers have a filesystem of their own")
	}
	found := &disks{
		layout:     observe.Layout{DedicatedImageFs: dedicated, SeparateContainerFs: separate},
		thresholds: m.config.Thresholds,
	}
	if separate && !utilfeature.DefaultFeatureGate.Enabled(features.KubeletSeparateDiskGC) {
		found.layout.Unsupported = true
		err = fmt.Errorf("%s is turned off but we still have a split filesystem", features.KubeletSeparateDiskGC)
	} else {
		err = nil
		// Which ones that overrides is a finding, told of at the first pass.
		found.thresholds, _ = threshold.WithContainerFs(m.config.Thresholds, found.layout)
	}
	return found, err
}

// summaryTimeout bounds a summary with EvictionPromptWake: three intervals, and
// more than a runtime that answers at all takes for a full node. Upstream waits
// for ever.
const summaryTimeout = 30 * time.Second

func (m *manager) summary(ctx context.Context) (*statsapi.Summary, error) {
	if m.prompt != nil {
		bounded, cancel := context.WithTimeoutCause(ctx, summaryTimeout, fmt.Errorf("the summary took longer than %v", summaryTimeout))
		defer cancel()
		ctx = bounded
	}
	summary, err := m.summaries.Get(ctx, true)
	if err == nil && summary == nil {
		err = errors.New("the summary is empty")
	}
	return summary, err
}

// refreshNotifiers tells the notifiers the latest numbers from time to time.
func (m *manager) refreshNotifiers(ctx context.Context, summary *statsapi.Summary) {
	m.mu.Lock()
	due := m.clock.Since(m.refreshedAt) > wake.RefreshInterval
	if due {
		m.refreshedAt = m.clock.Now()
	}
	notifiers := m.notifiers
	m.mu.Unlock()
	if !due {
		return
	}
	for _, notifier := range notifiers {
		if err := notifier.UpdateThreshold(ctx, summary); err != nil {
			klog.FromContext(ctx).Error(err, "Could not update a notifier", "notifier", notifier.Description())
		}
	}
}

// taken is a step: from which state, to which, and what it decided.
type taken struct {
	now           time.Time
	before, after decide.State
	decision      decide.Decision
}

// step runs the pure step on the present state and keeps the next.
func (m *manager) step(policy decide.Policy, pods []*v1.Pod, seen observe.Snapshot) taken {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restored != nil {
		m.state = journal.Adopt(*m.restored, policy, m.clock.Now())
		m.restored = nil
	}
	t := taken{now: m.clock.Now(), before: m.state}
	t.after, t.decision = decide.Step(policy, m.state, pods, seen, t.now)
	m.state = t.after
	return t
}

// conditions returns the node conditions that the last step found.
func (m *manager) conditions() []v1.NodeConditionType {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.Conditions
}

// tellOfCritical tells of critical pods that exceed a limit of their own: in an
// event too where evidence counts (#112893).
func (m *manager) tellOfCritical(ctx context.Context, policy decide.Policy, decision decide.Decision) {
	for _, pod := range decision.CriticalOverLimit {
		klog.FromContext(ctx).Error(nil, "A critical pod exceeds its limit of local storage and is not evicted", "pod", klog.KObj(pod))
		if policy.Evidence {
			m.recorder.Event(pod, v1.EventTypeWarning, "ExceededLocalStorageLimit", "The pod exceeds its limit of local storage and is not evicted, since it is critical.")
		}
	}
}

// enforceLimits evicts the pods that exceed their own limits, one after the other.
func (m *manager) enforceLimits(ctx context.Context, policy decide.Policy, decision decide.Decision) []*v1.Pod {
	m.tellOfCritical(ctx, policy, decision)
	var evicted []*v1.Pod
	for _, eviction := range decision.OverLimit {
		m.evict(ctx, eviction)
		evicted = append(evicted, eviction.Pod)
	}
	return evicted
}

// relieve reclaims what nobody uses, and evicts the victim if that did not help.
func (m *manager) relieve(ctx context.Context, policy decide.Policy, shortage *decide.Shortage, pods []*v1.Pod, seen observe.Snapshot) []*v1.Pod {
	logger := klog.FromContext(ctx).WithValues("resource", shortage.Resource, "signal", shortage.Threshold.Signal)
	logger.Info("Attempting to reclaim a starved resource")
	m.recorder.Eventf(m.nodeRef, v1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim %s", shortage.Resource)
	if len(shortage.Reclaim) > 0 {
		act.Reclaim(ctx, shortage.Reclaim, m.collectors)
		summary, err := m.summary(ctx)
		if err != nil {
			logger.Error(err, "Could not read the node's stats after reclaiming, going on with those from before")
		} else if decide.Resolved(judgedBy(policy, shortage), m.counted(policy, summary)) {
			logger.Info("Reclaiming was enough, no pod is evicted")
			return nil
		}
	}

	switch {
	case !shortage.Ranked:
		logger.Error(nil, "No pod is evicted: the layout of the filesystems is not supported")
		return nil
	case len(pods) == 0:
		logger.Error(nil, "No pod is evicted: there are none")
		return nil
	}
	for i, candidate := range shortage.Candidates {
		// Upstream orders the slice itself. Whoever hands out the same slice
		// every time sees the order of the last eviction in the next pass.
		pods[i] = candidate.Pod
	}
	logger.Info("Ranked the pods for eviction", "pods", klog.KObjSlice(pods))
	for _, t := range shortage.Starved {
		if at := seen.Observations[t.Signal].Time; !at.IsZero() {
			metrics.EvictionStatsAge.WithLabelValues(string(t.Signal)).Observe(metrics.SinceInSeconds(at))
		}
	}
	for _, pod := range shortage.Spared {
		logger.Error(nil, "A critical pod is not evicted", "pod", klog.KObj(pod))
	}
	if shortage.Victim == nil {
		logger.Info("No pod is evicted: none helps, or all are critical", "outside", shortage.Outside)
		return nil
	}
	m.evict(ctx, *shortage.Victim)
	return []*v1.Pod{shortage.Victim.Pod}
}

// counted are the observations of a summary as a step counts them.
func (m *manager) counted(policy decide.Policy, summary *statsapi.Summary) observe.Observations {
	seen := observe.FromSummary(summary, observe.PlatformMemory).Observations
	if m.prompt != nil {
		m.prompt.complete(seen)
	}
	if policy.ReclaimableMemory {
		seen.CountReclaimable()
	}
	return seen
}

// judgedBy is the policy by which a reclaim is judged: with EvictionTargetedReclaim
// the thresholds of the filesystem that was short, without it, as upstream, all.
func judgedBy(policy decide.Policy, shortage *decide.Shortage) decide.Policy {
	if policy.TargetedReclaim {
		policy.Thresholds = decide.OnFilesystemOf(policy, shortage.Threshold.Signal)
	}
	return policy
}

// logDecision writes what was seen, and what is starved, at a high verbosity.
func logDecision(logger klog.Logger, policy decide.Policy, seen observe.Snapshot, decision decide.Decision) {
	if logger = logger.V(3); !logger.Enabled() {
		return
	}
	for _, signal := range observe.Signals() {
		if o, found := seen.Observations[signal]; found {
			logger.Info("Observed", "signal", signal, "available", observe.Quantity(signal, o.Available), "capacity", observe.Quantity(signal, o.Capacity), "time", o.Time)
		}
	}
	for _, t := range policy.Thresholds {
		if o, found := seen.Observations[t.Signal]; found && threshold.Met(t, o) {
			logger.Info("Threshold met", "signal", t.Signal, "quantity", threshold.Quantity(t, o.Capacity), "gracePeriod", t.GracePeriod)
		}
	}
	if decision.Shortage == nil && len(decision.Shortages) == 0 {
		logger.Info("Nothing is to be done about any resource")
	}
}

// withoutNil drops pods that are nil; the slice is the same unless there are some.
func withoutNil(pods []*v1.Pod) []*v1.Pod {
	if !slices.Contains(pods, nil) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool { return pod == nil })
}
