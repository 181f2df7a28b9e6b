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

package decide

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

// The least gain that makes a pod a victim, by resource: less is within the noise
// of the numbers, and no shortage is over for it.
var floors = map[v1.ResourceName]int64{
	v1.ResourceMemory:           1 << 20, // bytes: an empty pod's pause and shim
	v1.ResourceEphemeralStorage: 1 << 20, // bytes: a log of a few lines
	observe.ResourceInodes:      16,      // an empty container's files
	observe.ResourcePIDs:        1,
	observe.ResourceSwap:        1 << 20, // bytes: some pages of a process that sleeps
}

// leastStall is the least share of a stall that makes a pod a victim: one percent of
// the time. Everybody waits a little on a node that is short.
const leastStall = observe.NoStallAtAll / 100

// floor is the least gain of a signal that makes a pod a victim.
func floor(traits observe.Traits) int64 {
	if traits.Stall != observe.NoStall {
		return leastStall
	}
	return floors[traits.Resource]
}

// leastShare is the part of what is used on a filesystem that pods must hold for
// their eviction to be a remedy at all, in percent. A disk that others fill is
// filled again whoever is evicted (#122224, #83107, #76930).
const leastShare = 5

// candidate is a pod with what its end would return.
type candidate struct {
	rank.Candidate
	gains Gains
	// unknown: nothing that could be true says what it holds of the resource.
	unknown bool
}

// shown is what of a candidate goes into the decision.
func (c candidate) shown(signal evictionapi.Signal) Candidate {
	gain, known := c.gains[signal]
	return Candidate{Candidate: c.Candidate, Gain: observe.Use{Amount: gain, Known: known}}
}

// finished says whether all of a pod's containers have ended for good, so that
// nothing of it is left to kill (#118679).
func finished(pod *v1.Pod) bool {
	switch pod.Status.Phase {
	case v1.PodSucceeded, v1.PodFailed:
		return true
	}
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) || len(pod.Spec.Containers) == 0 || pod.Spec.RestartPolicy == v1.RestartPolicyAlways || pod.Spec.RestartPolicy == "" {
		return false
	}
	for _, container := range pod.Status.ContainerStatuses {
		ended := container.State.Terminated
		if ended == nil || pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure && ended.ExitCode != 0 {
			return false
		}
	}
	return true
}

// gainsOf returns what a pod's end would return of every signal that was
// observed, as far as it is known now or was a short while ago.
func gainsOf(policy Policy, pod *v1.Pod, seen observe.Snapshot) Gains {
	gains := Gains{}
	for signal, observation := range seen.Observations {
		traits, found := observe.TraitsOf(signal)
		watched := func(t evictionapi.Threshold) bool { return t.Signal == signal }
		if !found || traits.Extra && !slices.ContainsFunc(policy.Thresholds, watched) {
			continue
		}
		parts := remedies[policy.Layout][traits.Filesystem].parts
		if parts&observe.LocalVolumes != 0 {
			// What a hostPath holds stays when the pod goes.
			parts = parts&^observe.LocalVolumes | observe.OwnVolumes
		}
		use := observe.Held(pod, seen.PodStats(pod.UID), traits, parts, observation.Capacity)
		if !use.Known {
			use = observe.Held(pod, seen.Recalled(pod.UID), traits, parts, observation.Capacity)
		}
		if use.Known {
			gains[signal] = use.Amount
		}
	}
	return gains
}

// choice is what the victims of one starved signal are chosen from.
type choice struct {
	signal     evictionapi.Signal
	traits     observe.Traits
	candidates []candidate
	// need is what is missing to the goal, what victims in flight will return
	// taken off.
	need int64
}

// victims returns the candidates whose gains cover the need: the first in the
// order that do, without those that became unnecessary by later ones; at most
// some. Of those, the last ones of the order are kept: they alone made the set
// enough.
func (c choice) victims(most int) []candidate {
	var chosen []candidate
	sum := int64(0)
	for _, candidate := range c.candidates {
		gain, known := candidate.gains[c.signal]
		if sum >= c.need || len(chosen) >= most {
			break
		}
		if candidate.unknown || !known || gain < floor(c.traits) {
			continue
		}
		chosen = append(chosen, candidate)
		sum += min(gain, math.MaxInt64-sum)
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		if gain := chosen[i].gains[c.signal]; sum-gain >= c.need {
			chosen = slices.Delete(chosen, i, i+1)
			sum -= gain
		}
	}
	return chosen
}

// lastResort returns the first of the candidates of whom nothing is known, if
// there is nobody else and the resource is one of which every pod that runs
// holds some. Without memory or process IDs the node does nothing more for
// anybody; a filesystem may be as full as it was, and a pressure as high.
func (c choice) lastResort() []candidate {
	if c.traits.Filesystem != observe.NoFilesystem || c.traits.Extra {
		return nil
	}
	i := slices.IndexFunc(c.candidates, func(candidate candidate) bool { return candidate.unknown })
	if i < 0 {
		return nil
	}
	return c.candidates[i : i+1]
}

// held adds up what the candidates are known to hold of the signal.
func (c choice) held() int64 {
	sum := int64(0)
	for _, candidate := range c.candidates {
		sum += min(candidate.gains[c.signal], math.MaxInt64-sum)
	}
	return sum
}

// helps says whether evicting pods can be a remedy: for a filesystem only if
// together they hold what is missing, and a part of what is used that counts.
func (c choice) helps(observation observe.Observation) bool {
	if c.traits.Filesystem == observe.NoFilesystem {
		return true
	}
	held := c.held()
	used := observation.Capacity - observation.Available
	return held >= c.need && held >= used/100*leastShare
}

// candidatesFor ranks the pods that may be victims of a starved resource: not
// critical, not in flight and, where evidence counts, not finished.
func candidatesFor(policy Policy, traits observe.Traits, signal evictionapi.Signal, ledger Ledger, pods []*v1.Pod, seen observe.Snapshot) (ranked []candidate, spared []*v1.Pod) {
	order := rank.Order{
		Resource: traits.Resource, Parts: remedies[policy.Layout][traits.Filesystem].parts, Traits: traits,
		OwnUnits: policy.Evidence, Swap: policy.Evidence,
	}
	for _, pod := range pods {
		if _, inFlight := ledger.Of(pod.UID); inFlight || policy.Evidence && finished(pod) {
			continue
		}
		if rank.Critical(pod) {
			spared = append(spared, pod)
			continue
		}
		stats := seen.PodStats(pod.UID)
		if stats == nil && policy.Evidence {
			stats = seen.Recalled(pod.UID)
		}
		gains := gainsOf(policy, pod, seen)
		_, known := gains[signal]
		keys := order.KeysOf(pod, stats, policy.PodLevelResources)
		if traits.Stall != observe.NoStall {
			keys.Growth = seen.Growth(pod.UID)
		}
		ranked = append(ranked, candidate{
			Candidate: rank.Candidate{Pod: pod, Keys: keys},
			gains:     gains, unknown: !known,
		})
	}
	slices.SortStableFunc(ranked, func(a, b candidate) int {
		if policy.Evidence && a.unknown != b.unknown {
			if b.unknown {
				return -1
			}
			return 1
		}
		// The name decides among equals, so that the order is the same each time.
		return cmp.Or(a.Keys.Compare(b.Keys), cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return ranked, spared
}
