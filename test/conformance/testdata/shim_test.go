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

// This file joins the package eviction while upstream's unit tests run against
// it (see TestUpstreamUnitTests). It offers the unexported names that those
// tests use, on top of this project's own types. What has no counterpart here is
// a plain stand-in; docs/conformance.md lists those.
package eviction

import (
	"context"
	"os"
	"sort"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/server/stats"
	"k8s.io/utils/clock"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// TestMain turns this project's feature gates off, unless told otherwise.
func TestMain(m *testing.M) {
	for name := range gates {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(name): false}); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// What upstream's messages say.
const (
	nodeLowMessageFmt   = "The node was low on resource: %v. "
	containerMessageFmt = "Container %s was using %s, request is %s, has larger consumption of %v. "
	podMessageFmt       = "Pod %s was using %s, request is %s, has larger consumption of %v. "
)

const (
	resourceInodes          = observe.ResourceInodes
	notifierRefreshInterval = wake.RefreshInterval
	memoryUsageAttribute    = wake.MemoryUsage
)

// managerImpl is the manager as upstream's tests build it, field by field.
type managerImpl struct {
	ours *manager

	summaryProvider stats.SummaryProvider
	config          Config
	clock           clock.WithTicker
	recorder        record.EventRecorder
	nodeRef         *v1.ObjectReference

	imageGC     ImageGC
	containerGC ContainerGC
	killPodFunc KillPodFunc

	thresholdsFirstObservedAt    thresholdsObservedAt
	nodeConditionsLastObservedAt nodeConditionsObservedAt
	nodeConditions               []v1.NodeConditionType

	localStorageCapacityIsolation bool
	dedicatedImageFs              *bool
	thresholdNotifiers            []ThresholdNotifier
}

// manager returns the real one, with what the test has set since.
func (s *managerImpl) manager() *manager {
	if s.ours == nil {
		containers, images := s.containerGC, s.imageGC
		if containers == nil {
			containers, images = noGC{}, noGC{}
		}
		s.ours = newManager(s.summaryProvider, s.config, s.killPodFunc, images, containers, s.recorder, s.nodeRef, s.clock, s.localStorageCapacityIsolation)
		if s.dedicatedImageFs != nil {
			s.ours.disks = &disks{
				layout:     observe.Layout{DedicatedImageFs: *s.dedicatedImageFs, Unsupported: true},
				thresholds: s.config.Thresholds,
			}
		}
	}
	s.ours.notifiers = s.thresholdNotifiers
	return s.ours
}

type noGC struct{}

func (noGC) DeleteUnusedImages(context.Context) error        { return nil }
func (noGC) DeleteAllUnusedContainers(context.Context) error { return nil }

func (s *managerImpl) synchronize(ctx context.Context, diskInfo DiskInfoProvider, pods ActivePodsFunc) ([]*v1.Pod, error) {
	evicted, err := s.manager().pass(ctx, wake.Wake{Reason: wake.Interval}, diskInfo, pods)
	s.nodeConditions = s.ours.conditions()
	return evicted, err
}

func (s *managerImpl) admit(ctx context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	m := s.manager()
	m.state.Conditions = s.nodeConditions
	return m.admit(ctx, attrs)
}

func (s *managerImpl) IsUnderMemoryPressure() bool { return s.manager().IsUnderMemoryPressure() }
func (s *managerImpl) IsUnderDiskPressure() bool   { return s.manager().IsUnderDiskPressure() }
func (s *managerImpl) IsUnderPIDPressure() bool    { return s.manager().IsUnderPIDPressure() }

func (s *managerImpl) emptyDirLimitEviction(logger klog.Logger, podStats statsapi.PodStats, pod *v1.Pod) bool {
	policy := decide.Policy{LocalStorageLimits: true}
	askGates(&policy)
	seen := observe.FromSummary(&statsapi.Summary{Pods: []statsapi.PodStats{podStats}}, observe.PlatformMemory)
	_, decision := decide.Step(policy, decide.State{}, []*v1.Pod{pod}, seen, time.Now())
	for _, eviction := range decision.OverLimit {
		act.Evict(klog.NewContext(context.Background(), logger), eviction, act.Killer(s.killPodFunc), s.recorder)
		return eviction.Cause == decide.CauseEmptyDirLimit
	}
	return false
}

// Observations.

type signalObservation struct {
	capacity  *resource.Quantity
	available *resource.Quantity
	time      metav1.Time
}

type signalObservations map[evictionapi.Signal]signalObservation

func (o signalObservations) ours() observe.Observations {
	all := observe.Observations{}
	for signal, seen := range o {
		var one observe.Observation
		if seen.available != nil {
			one.Available = seen.available.Value()
		}
		if seen.capacity != nil {
			one.Capacity = seen.capacity.Value()
		}
		one.Time = seen.time.Time
		all[signal] = one
	}
	return all
}

type statsFunc func(pod *v1.Pod) (statsapi.PodStats, bool)

func makeSignalObservations(_ klog.Logger, summary *statsapi.Summary) (signalObservations, statsFunc) {
	seen := observe.FromSummary(summary, observe.PlatformMemory)
	all := signalObservations{}
	for signal, one := range seen.Observations {
		all[signal] = signalObservation{
			capacity:  observe.Quantity(signal, one.Capacity),
			available: observe.Quantity(signal, one.Available),
			time:      metav1.Time{Time: one.Time},
		}
	}
	return all, func(pod *v1.Pod) (statsapi.PodStats, bool) {
		if stats := seen.PodStats(pod.UID); stats != nil {
			return *stats, true
		}
		return statsapi.PodStats{}, false
	}
}

func diskUsage(fs *statsapi.FsStats) *resource.Quantity {
	return resource.NewQuantity(observe.BytesUsed(fs).Int64(), resource.BinarySI)
}

func inodeUsage(fs *statsapi.FsStats) *resource.Quantity {
	stats := &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Logs: fs}}}
	return resource.NewQuantity(observe.DiskUsed(&v1.Pod{}, stats, observe.Logs).Inodes.Int64(), resource.DecimalSI)
}

func memoryUsage(memory *statsapi.MemoryStats) *resource.Quantity {
	return resource.NewQuantity(observe.WorkingSet(memory).Int64(), resource.BinarySI)
}

func processUsage(processes *statsapi.ProcessStats) uint64 {
	return observe.Processes(processes)
}

// localVolumeNames finds the volumes that count as local by asking what each
// would add to the pod's use.
func localVolumeNames(pod *v1.Pod) []string {
	var names []string
	one := uint64(1)
	for _, volume := range pod.Spec.Volumes {
		alone := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{volume}}}
		stats := &statsapi.PodStats{VolumeStats: []statsapi.VolumeStats{{Name: volume.Name, FsStats: statsapi.FsStats{UsedBytes: &one}}}}
		if !observe.DiskUsed(alone, stats, observe.LocalVolumes).Bytes.IsZero() {
			names = append(names, volume.Name)
		}
	}
	return names
}

// Thresholds.

type thresholdsObservedAt map[evictionapi.Threshold]time.Time

func addAllocatableThresholds(thresholds []evictionapi.Threshold) []evictionapi.Threshold {
	return threshold.WithAllocatable(thresholds)
}

func parsePercentage(text string) (float32, error) { return threshold.Percentage(text) }

func compareThresholdValue(a, b evictionapi.ThresholdValue) bool { return threshold.SameValue(a, b) }

func hasThreshold(thresholds []evictionapi.Threshold, t evictionapi.Threshold) bool {
	for _, other := range thresholds {
		if threshold.Same(other, t) {
			return true
		}
	}
	return false
}

func isHardEvictionThreshold(t evictionapi.Threshold) bool { return threshold.Hard(t) }

func isAllocatableEvictionThreshold(t evictionapi.Threshold) bool {
	return t.Signal == evictionapi.SignalAllocatableMemoryAvailable
}

func thresholdsMet(_ klog.Logger, thresholds []evictionapi.Threshold, observations signalObservations, enforceMinReclaim bool) []evictionapi.Threshold {
	var met []evictionapi.Threshold
	seen := observations.ours()
	for _, t := range thresholds {
		if one, found := seen[t.Signal]; found && (enforceMinReclaim && threshold.Unresolved(t, one) || !enforceMinReclaim && threshold.Met(t, one)) {
			met = append(met, t)
		}
	}
	return met
}

func thresholdsFirstObservedAt(thresholds []evictionapi.Threshold, last thresholdsObservedAt, now time.Time) thresholdsObservedAt {
	at := thresholdsObservedAt{}
	for _, standing := range standingsOf(last).Advance(thresholds, belowAll(thresholds), now, false) {
		at[standing.Threshold] = standing.Since
	}
	return at
}

func standingsOf(observedAt thresholdsObservedAt) threshold.Standings {
	var standings threshold.Standings
	for t, since := range observedAt {
		standings = append(standings, threshold.Standing{Threshold: t, Since: since})
	}
	return standings
}

// belowAll are observations that meet each of the thresholds.
func belowAll(thresholds []evictionapi.Threshold) observe.Observations {
	seen := observe.Observations{}
	for _, t := range thresholds {
		seen[t.Signal] = observe.Observation{}
	}
	return seen
}

func thresholdsMetGracePeriod(_ klog.Logger, observedAt thresholdsObservedAt, now time.Time) []evictionapi.Threshold {
	var past []evictionapi.Threshold
	standings := standingsOf(observedAt)
	for _, standing := range standings.Advance(standings.Thresholds(), belowAll(standings.Thresholds()), now, false) {
		if standing.PastGrace {
			past = append(past, standing.Threshold)
		}
	}
	return past
}

// thresholdsUpdatedStats asks two steps which of the thresholds is fresh: the
// first sees the earlier observations, the second the later ones.
func thresholdsUpdatedStats(_ klog.Logger, thresholds []evictionapi.Threshold, observations, last signalObservations) []evictionapi.Threshold {
	var fresh []evictionapi.Threshold
	for _, t := range thresholds {
		met := t
		met.Operator = evictionapi.OpLessThan
		met.Value.Quantity = resource.NewQuantity(1, resource.BinarySI)
		policy := decide.Policy{Thresholds: []evictionapi.Threshold{met}}
		state, _ := decide.Step(policy, decide.State{}, nil, observe.Snapshot{Observations: last.ours()}, time.Now())
		_, decision := decide.Step(policy, state, nil, observe.Snapshot{Observations: observations.ours()}, time.Now())
		if decision.Shortage != nil {
			fresh = append(fresh, t)
		}
	}
	return fresh
}

type byEvictionPriority []evictionapi.Threshold

func (b byEvictionPriority) Len() int           { return len(b) }
func (b byEvictionPriority) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b byEvictionPriority) Less(i, _ int) bool { return decide.FirstByMemory(b[i]) }

func getReclaimableThreshold(_ klog.Logger, thresholds []evictionapi.Threshold) (evictionapi.Threshold, v1.ResourceName, bool) {
	for _, t := range thresholds {
		if traits, known := observe.TraitsOf(t.Signal); known {
			return t, traits.Resource, true
		}
	}
	return evictionapi.Threshold{}, "", false
}

// Node conditions.

type nodeConditionsObservedAt map[v1.NodeConditionType]time.Time

func nodeConditions(thresholds []evictionapi.Threshold) []v1.NodeConditionType {
	return threshold.Raised(thresholds)
}

func nodeConditionsLastObservedAt(conditions []v1.NodeConditionType, last nodeConditionsObservedAt, now time.Time) nodeConditionsObservedAt {
	return nodeConditionsObservedAt(threshold.RaisedAt(last).With(conditions, now))
}

func nodeConditionsObservedSince(observedAt nodeConditionsObservedAt, period time.Duration, now time.Time) []v1.NodeConditionType {
	return threshold.RaisedAt(observedAt).Within(period, now)
}

func hasNodeCondition(conditions []v1.NodeConditionType, condition v1.NodeConditionType) bool {
	for _, one := range conditions {
		if one == condition {
			return true
		}
	}
	return false
}

// Ranking.

type fsStatsType string

const (
	fsStatsLocalVolumeSource fsStatsType = "volumes"
	fsStatsLogs              fsStatsType = "logs"
	fsStatsRoot              fsStatsType = "layers"
)

type cmpFunc func(p1, p2 *v1.Pod) int

type sorter struct {
	pods []*v1.Pod
	cmp  []cmpFunc
}

func orderedBy(cmp ...cmpFunc) *sorter { return &sorter{cmp: cmp} }

func (s *sorter) Sort(pods []*v1.Pod) {
	sort.SliceStable(pods, func(i, j int) bool {
		for _, cmp := range s.cmp {
			if by := cmp(pods[i], pods[j]); by != 0 {
				return by < 0
			}
		}
		return false
	})
}

// byKeys compares pods by some of the keys of an order.
func byKeys(order rank.Order, stats statsFunc, keep func(rank.Keys) rank.Keys) cmpFunc {
	keys := func(pod *v1.Pod) rank.Keys {
		var known *statsapi.PodStats
		if found, ok := stats(pod); ok {
			known = &found
		}
		return keep(order.KeysOf(pod, known, true))
	}
	return func(p1, p2 *v1.Pod) int { return keys(p1).Compare(keys(p2)) }
}

func groupOnly(k rank.Keys) rank.Keys { return rank.Keys{Group: k.Group} }
func excessOnly(k rank.Keys) rank.Keys {
	return rank.Keys{NoStats: k.NoStats, Excess: k.Excess, Processes: k.Processes}
}

func priority(p1, p2 *v1.Pod) int {
	none := func(*v1.Pod) (statsapi.PodStats, bool) { return statsapi.PodStats{}, false }
	return byKeys(rank.Order{}, none, func(k rank.Keys) rank.Keys { return rank.Keys{Priority: k.Priority} })(p1, p2)
}

func exceedMemoryRequests(stats statsFunc) cmpFunc {
	return byKeys(rank.Order{Resource: v1.ResourceMemory}, stats, groupOnly)
}

func memory(stats statsFunc) cmpFunc {
	return byKeys(rank.Order{Resource: v1.ResourceMemory}, stats, excessOnly)
}

func process(stats statsFunc) cmpFunc {
	return byKeys(rank.Order{Resource: observe.ResourcePIDs}, stats, excessOnly)
}

func exceedDiskRequests(stats statsFunc, fs []fsStatsType, resource v1.ResourceName) cmpFunc {
	return byKeys(diskOrder(fs, resource), stats, groupOnly)
}

func disk(stats statsFunc, fs []fsStatsType, resource v1.ResourceName) cmpFunc {
	return byKeys(diskOrder(fs, resource), stats, excessOnly)
}

func diskOrder(fs []fsStatsType, resource v1.ResourceName) rank.Order {
	parts := map[fsStatsType]observe.Parts{fsStatsLocalVolumeSource: observe.LocalVolumes, fsStatsLogs: observe.Logs, fsStatsRoot: observe.WritableLayers}
	order := rank.Order{Resource: resource}
	for _, one := range fs {
		order.Parts |= parts[one]
	}
	return order
}

func evictionMessage(resource v1.ResourceName, pod *v1.Pod, stats statsFunc, _ []evictionapi.Threshold, observations signalObservations) (string, map[string]string) {
	summary := &statsapi.Summary{}
	if found, ok := stats(pod); ok {
		found.PodRef.UID = string(pod.UID)
		summary.Pods = append(summary.Pods, found)
	}
	seen := observe.FromSummary(summary, observe.PlatformMemory)
	seen.Observations = observations.ours()
	policy := decide.Policy{}
	askGates(&policy)
	return decide.Explain(&decide.Shortage{Resource: resource}, pod, seen, policy.PodLevelResources)
}

// Notifiers.

type linuxMemoryThresholdNotifier struct {
	ours *wake.MemoryThreshold

	handler    func(string)
	factory    NotifierFactory
	notifier   CgroupNotifier
	events     chan struct{}
	cgroupPath string
	threshold  evictionapi.Threshold
}

func (n *linuxMemoryThresholdNotifier) real() *wake.MemoryThreshold {
	if n.ours == nil {
		n.ours = wake.MemoryThresholdAt(n.threshold, n.cgroupPath, func(logger klog.Logger, path, attribute string, value int64) (wake.Notifier, error) {
			notifier, err := n.factory.NewCgroupNotifier(logger, path, attribute, value)
			return relay{notifier, n.events}, err
		}, n.handler)
	}
	return n.ours
}

// relay has a notifier send on the channel that the test made.
type relay struct {
	CgroupNotifier
	events chan struct{}
}

func (r relay) Start(ctx context.Context, crossed chan<- struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.CgroupNotifier.Start(ctx, r.events)
	}()
	for {
		select {
		case event := <-r.events:
			crossed <- event
		case <-done:
			return
		}
	}
}

func (n *linuxMemoryThresholdNotifier) UpdateThreshold(ctx context.Context, summary *statsapi.Summary) error {
	return n.real().UpdateThreshold(ctx, summary)
}
func (n *linuxMemoryThresholdNotifier) Start(ctx context.Context) { n.real().Start(ctx) }
func (n *linuxMemoryThresholdNotifier) Description() string       { return n.real().Description() }
