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
	"math"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

const subsystem = "kubelet"

// signalLabel is what kubelet_evictions calls a signal.
const signalLabel = "eviction_signal"

func gauges(name, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

func counters(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

// Metrics of this package, beside kubelet_evictions and
// kubelet_eviction_stats_age_seconds, which are upstream's. Amounts are in the
// signal's own unit: bytes, inodes or processes, and for pressure hundredths of a
// percent of the time that is left.
var (
	unknownObservations = counters("eviction_unknown_observations_total",
		"Observations whose numbers could not be true, by eviction signal. They decide nothing.", signalLabel)
	killsInFlight = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "eviction_kills_in_flight", StabilityLevel: metrics.ALPHA,
		Help: "Pods that are being evicted and have not given everything back yet.",
	})
	slowKills = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "eviction_slow_kills_total", StabilityLevel: metrics.ALPHA,
		Help: "Evictions whose kill exceeded its grace period by 30 seconds.",
	})

	signalAvailable = gauges("eviction_signal_available",
		"What the last pass saw available of a signal, in the signal's unit.", signalLabel)
	signalThreshold = gauges("eviction_threshold",
		"What must be available of a signal at the least, by the kind of the threshold: hard or soft.", signalLabel, "kind")
	secondsToThreshold = gauges("eviction_threshold_seconds",
		"How long until the nearest threshold of a signal is crossed if it goes on falling as between the last two observations; +Inf while it does not, 0 when it is crossed.", signalLabel)
	passes = counters("eviction_passes_total",
		"Passes of the eviction manager, by what woke it.", "reason")
	crossingToKill = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "eviction_crossing_to_kill_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time from when a threshold was seen crossed, or its grace period was over, to when the kill of a victim was asked for.",
		// From a wake-up by the kernel to upstream's interval and the pods of a full node.
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	})
	releaseExpected = counters("eviction_release_expected_total",
		"What victims were expected to return of a signal, in its unit, counted when it is awaited no more.", signalLabel)
	releaseMeasured = counters("eviction_release_measured_total",
		"By how much a signal had risen when the return of victims was awaited no more, at most what was expected.", signalLabel)
	reclaimWanted = counters("eviction_reclaim_wanted_total",
		"What reclaims without pods were to free of a signal, in its unit.", signalLabel)
	reclaimFreed = counters("eviction_reclaim_freed_total",
		"What was available more of a signal after reclaims without pods.", signalLabel)
	droppedRecords = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "eviction_journal_dropped_records_total", StabilityLevel: metrics.ALPHA,
		Help: "Records of the eviction journal that could not be written.",
	})

	registerMetrics = sync.OnceFunc(func() {
		legacyregistry.MustRegister(unknownObservations, killsInFlight, slowKills, signalAvailable, signalThreshold, secondsToThreshold,
			passes, crossingToKill, releaseExpected, releaseMeasured, reclaimWanted, reclaimFreed, droppedRecords)
	})
)

// meters show passes in the metrics. The zero value shows nothing until follow is
// set, so that with all gates off a pass costs nothing more.
type meters struct {
	follow bool

	// mu guards what was last seen: passes may run side by side.
	mu   sync.Mutex
	last map[evictionapi.Signal]sample
}

// sample is an observation and what was lost a second up to it, negative for a gain.
type sample struct {
	observe.Observation
	loss float64
}

// pass shows what was seen and decided.
func (m *meters) pass(why wake.Wake, t taken, policy decide.Policy) {
	if !m.follow {
		return
	}
	passes.WithLabelValues(string(why.Reason)).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[evictionapi.Signal]sample{}
	}
	for signal, o := range t.decision.Seen {
		before := m.last[signal]
		now := sample{Observation: o, loss: before.loss}
		if elapsed := o.Time.Sub(before.Time).Seconds(); elapsed > 0 && !before.Time.IsZero() {
			now.loss = float64(before.Available-o.Available) / elapsed
		}
		m.last[signal] = now
		signalAvailable.WithLabelValues(string(signal)).Set(float64(o.Available))
	}
	left := map[evictionapi.Signal]float64{}
	for _, t := range policy.Thresholds {
		now, found := m.last[t.Signal]
		if !found || !threshold.Watched(t) {
			continue
		}
		limit := threshold.Quantity(t, now.Capacity).Value()
		kind := "soft"
		if threshold.Hard(t) {
			kind = "hard"
		}
		signalThreshold.WithLabelValues(string(t.Signal), kind).Set(float64(limit))
		seconds := now.until(limit)
		if before, found := left[t.Signal]; !found || seconds < before {
			left[t.Signal] = seconds
		}
	}
	for signal, seconds := range left {
		secondsToThreshold.WithLabelValues(string(signal)).Set(seconds)
	}
	for _, settled := range t.before.Ledger.Settled(t.after.Ledger, t.decision.Seen) {
		for signal, gain := range settled.Entry.Gains {
			releaseExpected.WithLabelValues(string(signal)).Add(float64(gain))
			releaseMeasured.WithLabelValues(string(signal)).Add(float64(min(gain, settled.Measured[signal])))
		}
	}
}

// until returns the seconds until no more than the limit is available.
func (s sample) until(limit int64) float64 {
	headroom := float64(s.Available) - float64(limit)
	switch {
	case headroom <= 0:
		return 0
	case s.loss <= 0:
		return math.Inf(1)
	}
	return headroom / s.loss
}

// killed shows how long it took from a crossing to the kills that a pass asked for.
func (m *meters) killed(why wake.Wake, t taken, seen observe.Snapshot) {
	if !m.follow {
		return
	}
	now := time.Now()
	for i := range t.decision.Shortages {
		shortage := &t.decision.Shortages[i]
		since := seen.Observations[shortage.Threshold.Signal].Time
		if why.Reason == wake.Crossing || why.Reason == wake.Memcg {
			since = why.At
		}
		for _, standing := range t.after.Standings {
			if over := standing.Since.Add(standing.Threshold.GracePeriod); standing.Threshold == shortage.Threshold && over.After(since) {
				since = over
			}
		}
		for range shortage.Victims {
			crossingToKill.Observe(max(0, now.Sub(since).Seconds()))
		}
	}
}
