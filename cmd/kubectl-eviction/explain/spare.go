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

package explain

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Spared is a change that would have spared the pod, found by taking the recorded
// step again with it.
type Spared struct {
	// Change to the pod or the configuration.
	Change string `json:"change"`
	// Instead lists the pods that would have gone; none when nobody would have.
	Instead []string `json:"instead,omitempty"`
}

// Spare looks for what would have spared a pod: a request, a priority, a threshold,
// or a limit of its own.
func (e *Eviction) Spare() ([]Spared, error) {
	if e.pass == nil || e.config == nil || e.pass.Abridged {
		return nil, nil
	}
	policy, err := e.config.Config.Policy()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(e.pass.Pods, func(p journal.Pod) bool { return p.UID == e.Pod.UID })
	if at < 0 {
		return nil, nil
	}
	shortage := e.shortage()
	if shortage == nil {
		return e.spareLimit(), nil
	}
	var spared []Spared
	try := func(change string, pod journal.Pod) (bool, error) {
		record := *e.pass
		record.Pods = slices.Clone(e.pass.Pods)
		record.Pods[at] = pod
		_, decision, err := record.Step(policy)
		if err != nil {
			return false, err
		}
		gone, names := victims(decision)
		if gone[e.Pod.UID] {
			return false, nil
		}
		spared = append(spared, Spared{Change: change, Instead: names})
		return true, nil
	}
	enoughRequest, requesting, possible := withRequest(e.pass.Pods[at], shortage)
	done := false
	if possible {
		if done, err = try(enoughRequest, requesting); err != nil {
			return nil, err
		}
	}
	byPriority, err := e.sparePriority(shortage, e.pass.Pods[at], "", try)
	if err != nil {
		return nil, err
	}
	if possible && !done && !byPriority {
		if _, err := e.sparePriority(shortage, requesting, enoughRequest+" and ", try); err != nil {
			return nil, err
		}
	}
	for _, standing := range shortage.Thresholds {
		observation, found := e.pass.Observations[standing.Signal]
		if !found || standing.Index == nil {
			continue
		}
		if stalls(shortage) {
			spared = append(spared, Spared{Change: fmt.Sprintf("%s of %s or more in place of %s, at that time",
				standing.Signal, observe.Percent(observation.Capacity-observation.Available), e.config.Config.Thresholds[*standing.Index])})
			continue
		}
		spared = append(spared, Spared{Change: fmt.Sprintf("%s of %s or less in place of %s, at that time",
			standing.Signal, Amount(standing.Signal, observation.Available), e.config.Config.Thresholds[*standing.Index])})
	}
	return spared, nil
}

// sparePriority looks for the lowest priority that would have spared a pod.
func (e *Eviction) sparePriority(shortage *journal.Shortage, pod journal.Pod, with string, try func(string, journal.Pod) (bool, error)) (bool, error) {
	for _, priority := range above(shortage.Candidates, pod.Priority) {
		pod.Priority = &priority
		if done, err := try(fmt.Sprintf("%sa priority of %d or more", with, priority), pod); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// shortage for which the pod went; nil if it went for a limit of its own.
func (e *Eviction) shortage() *journal.Shortage {
	for i := range e.pass.Decision.Shortages {
		shortage := &e.pass.Decision.Shortages[i]
		if slices.ContainsFunc(shortage.Victims, func(v journal.Victim) bool { return v.UID == e.Pod.UID }) {
			return shortage
		}
	}
	return nil
}

func (e *Eviction) spareLimit() []Spared {
	return []Spared{{Change: "a higher limit of its own, or none: see the message"}}
}

// withRequest is the pod with a request that its use does not exceed.
func withRequest(pod journal.Pod, shortage *journal.Shortage) (change string, changed journal.Pod, possible bool) {
	if shortage.Resource != v1.ResourceMemory && shortage.Resource != v1.ResourceEphemeralStorage || len(pod.Containers) == 0 || stalls(shortage) {
		return "", pod, false
	}
	i := slices.IndexFunc(shortage.Candidates, func(c journal.Candidate) bool { return c.UID == pod.UID })
	if i < 0 || shortage.Candidates[i].Group != "above" || pod.Requests != nil {
		return "", pod, false
	}
	// The request, as the candidate's excess shows it, and what it is short of.
	excess := shortage.Candidates[i].Excess
	containers := slices.Clone(pod.Containers)
	first := containers[0]
	requests := map[v1.ResourceName]string{}
	for name, quantity := range first.Requests {
		requests[name] = quantity
	}
	more, total := enough(&pod, shortage.Resource, excess, requests)
	requests[shortage.Resource] = more
	first.Requests = requests
	containers[0] = first
	pod.Containers = containers
	return fmt.Sprintf("a request of %s %s or more", AmountOf(shortage.Resource, total), shortage.Resource), pod, true
}

// enough is a request of the first container that makes up for an excess, and what
// the pod then requests in all.
func enough(pod *journal.Pod, resource v1.ResourceName, excess int64, requests map[v1.ResourceName]string) (quantity string, total int64) {
	api, err := pod.API()
	if err != nil {
		return requests[resource], 0
	}
	for _, container := range api.Spec.Containers {
		q := container.Resources.Requests[resource]
		total += q.Value()
	}
	first := api.Spec.Containers[0].Resources.Requests[resource]
	return observe.Quantity("memory.available", first.Value()+excess).String(), total + excess
}

// above lists the priorities to try, the lowest first: one more than those of the
// other candidates that are not below the pod's own.
func above(candidates []journal.Candidate, own *int32) []int32 {
	mine := int32(0)
	if own != nil {
		mine = *own
	}
	var tries []int32
	for _, candidate := range candidates {
		if candidate.Priority >= mine && candidate.Priority < systemCritical-1 {
			tries = append(tries, candidate.Priority+1)
		}
	}
	slices.Sort(tries)
	return slices.Compact(tries)
}

// systemCritical is the lowest priority that is never evicted, and that no pod of a
// user may have (pkg/apis/scheduling, Kubernetes v1.37.2).
const systemCritical int32 = 2_000_000_000

// victims are the pods that a decision evicts.
func victims(decision decide.Decision) (map[types.UID]bool, []string) {
	gone := map[types.UID]bool{}
	var names []string
	add := func(pod *v1.Pod) {
		if !gone[pod.UID] {
			gone[pod.UID] = true
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	for _, shortage := range decision.Shortages {
		for _, victim := range shortage.Victims {
			add(victim.Pod)
		}
	}
	if decision.Shortage != nil && decision.Shortage.Victim != nil {
		add(decision.Shortage.Victim.Pod)
	}
	for _, kill := range decision.Kills {
		add(kill.Eviction.Pod)
	}
	for _, eviction := range decision.OverLimit {
		add(eviction.Pod)
	}
	slices.SortFunc(names, strings.Compare)
	return gone, names
}
