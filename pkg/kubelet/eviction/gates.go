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
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
)

// The project's feature gates, for featureGates in the kubelet's configuration.
// They are declared before they have an effect, so that a configuration can
// name them with every version of this package; docs/feature-gates.md says
// which have one. While all of them are off the manager behaves as upstream's.
const (
	// On: probe, PSI triggers and memcg events wake the loop.
	evictionPromptWake featuregate.Feature = "EvictionPromptWake"
	// On: kills run beside the loop, and pending releases count.
	evictionConcurrentKills featuregate.Feature = "EvictionConcurrentKills"
	// On: ranking and limits go by what is known.
	evictionEvidence featuregate.Feature = "EvictionEvidence"
	// On: reclaim goes step by step to a goal.
	evictionTargetedReclaim featuregate.Feature = "EvictionTargetedReclaim"
	// On: each pass leaves a record.
	evictionJournal featuregate.Feature = "EvictionJournal"
	// Off: page cache and reclaimable slab count as available.
	evictionReclaimableMemory featuregate.Feature = "EvictionReclaimableMemory"
	// Off: thresholds on PSI, swap and allocatable PIDs.
	evictionPressureSignals featuregate.Feature = "EvictionPressureSignals"
)

// gates are on where nobody would want upstream's behaviour back except to
// compare, and off where a number changes its meaning.
var gates = map[featuregate.Feature]featuregate.FeatureSpec{
	evictionPromptWake:        {Default: true, PreRelease: featuregate.Beta},
	evictionConcurrentKills:   {Default: true, PreRelease: featuregate.Beta},
	evictionEvidence:          {Default: true, PreRelease: featuregate.Beta},
	evictionTargetedReclaim:   {Default: true, PreRelease: featuregate.Beta},
	evictionJournal:           {Default: true, PreRelease: featuregate.Beta},
	evictionReclaimableMemory: {Default: false, PreRelease: featuregate.Alpha},
	evictionPressureSignals:   {Default: false, PreRelease: featuregate.Alpha},
}

func init() {
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Add(gates))
}

// pressureSignals says whether thresholds may use the signals of
// EvictionPressureSignals. They need the gates without which a pressure would take one
// innocent pod after the other: nobody would wait for the average to fall, or look at
// who waits; and the one whose probe reads them.
func pressureSignals() bool {
	enabled := utilfeature.DefaultFeatureGate.Enabled
	return enabled(evictionPressureSignals) && enabled(evictionConcurrentKills) && enabled(evictionEvidence) && enabled(evictionPromptWake)
}

// askGates fills in what the feature gates say now, upstream's and ours.
func askGates(policy *decide.Policy) {
	enabled := utilfeature.DefaultFeatureGate.Enabled
	policy.PodLevelResources = enabled(features.PodLevelResources)
	askVersion(policy)
	policy.ConcurrentKills = enabled(evictionConcurrentKills)
	policy.Evidence = enabled(evictionEvidence)
	policy.TargetedReclaim = enabled(evictionTargetedReclaim)
	policy.ReclaimableMemory = enabled(evictionReclaimableMemory)
}
