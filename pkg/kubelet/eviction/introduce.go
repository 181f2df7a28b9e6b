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
	"maps"
	"slices"

	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// introduce logs the thresholds in absolute numbers, and what is hardly meant in
// them. It is called once, after the first summary: capacities are not known before.
func (m *manager) introduce(logger klog.Logger, policy decide.Policy, seen observe.Observations) {
	capacity := map[evictionapi.Signal]int64{}
	for signal, o := range seen {
		if o.Capacity > 0 {
			capacity[signal] = o.Capacity
		}
	}
	var lines []string
	for _, t := range policy.Thresholds {
		if t.Operator != "" { // a container filesystem that follows no threshold
			most, known := capacity[t.Signal]
			lines = append(lines, threshold.Describe(t, most, known))
		}
	}
	var capacities []string
	for _, signal := range slices.Sorted(maps.Keys(capacity)) {
		capacities = append(capacities, string(signal)+"="+threshold.AmountText(signal, capacity[signal]))
	}
	logger.Info("Effective eviction thresholds", "thresholds", lines, "capacities", capacities,
		"pressureTransitionPeriod", policy.PressureTransitionPeriod, "maxPodGracePeriodSeconds", policy.MaxPodGracePeriodSeconds)
	for _, finding := range threshold.Findings(threshold.Subject{
		Thresholds:               m.written,
		MaxPodGracePeriodSeconds: policy.MaxPodGracePeriodSeconds,
		Capacity:                 capacity,
		Layout:                   &policy.Layout,
	}) {
		values := []any{"finding", finding.Name, "severity", finding.Severity, "problem", finding.Problem, "fix", finding.Fix, "reports", finding.Reports}
		if finding.Severity == threshold.Error {
			logger.Error(nil, "An eviction setting is hardly meant", values...)
		} else {
			logger.Info("An eviction setting is hardly meant", values...)
		}
	}
}
