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

package threshold

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// conditions in the order in which they are reported. Upstream's order is that
// of a map; a message that lists them should not change from one to the next.
var conditions = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// RaisedAt holds when each node condition was last raised by a met threshold.
type RaisedAt map[v1.NodeConditionType]time.Time

// Raised returns the conditions that the thresholds raise when they are met.
func Raised(met []evictionapi.Threshold) []v1.NodeConditionType {
	raised := []v1.NodeConditionType{}
	for _, condition := range conditions {
		if slices.ContainsFunc(met, func(t evictionapi.Threshold) bool {
			traits, known := observe.TraitsOf(t.Signal)
			return known && traits.Condition == condition
		}) {
			raised = append(raised, condition)
		}
	}
	return raised
}

// With returns the times after a pass at now that raised the conditions.
func (r RaisedAt) With(raised []v1.NodeConditionType, now time.Time) RaisedAt {
	after := make(RaisedAt, len(conditions))
	maps.Copy(after, r)
	for _, condition := range raised {
		after[condition] = now
	}
	return after
}

// Within returns the conditions that were raised less than a period before
// now: a condition stays for the transition period after it was last raised. A
// period of 0 reports none at all, which is why the kubelet's defaulting turns
// 0 into five minutes.
func (r RaisedAt) Within(period time.Duration, now time.Time) []v1.NodeConditionType {
	present := []v1.NodeConditionType{}
	for _, condition := range conditions {
		if at, raised := r[condition]; raised && now.Sub(at) < period {
			present = append(present, condition)
		}
	}
	return present
}
