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
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics of this package, beside kubelet_evictions and
// kubelet_eviction_stats_age_seconds, which are upstream's.
var (
	unknownObservations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "kubelet", Name: "eviction_unknown_observations_total", StabilityLevel: metrics.ALPHA,
		Help: "Observations whose numbers could not be true, by eviction signal. They decide nothing.",
	}, []string{"eviction_signal"})
	killsInFlight = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "kubelet", Name: "eviction_kills_in_flight", StabilityLevel: metrics.ALPHA,
		Help: "Pods that are being evicted and have not given everything back yet.",
	})
	slowKills = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "kubelet", Name: "eviction_slow_kills_total", StabilityLevel: metrics.ALPHA,
		Help: "Evictions whose kill exceeded its grace period by 30 seconds.",
	})
	registerMetrics = sync.OnceFunc(func() {
		legacyregistry.MustRegister(unknownObservations, killsInFlight, slowKills)
	})
)
