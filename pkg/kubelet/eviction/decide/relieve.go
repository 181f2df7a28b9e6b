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
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// MaxKills is how many kills run at once. Each holds a goroutine and a call to
// the runtime, which serialises most of them anyway; ten pods of a full node of
// 110 are more than a runtime stops in a second.
const MaxKills = 10

// relieve decides with ConcurrentKills: every starved signal gets its victims in
// this pass, as many as its gap needs after what is pending, and a victim's gains
// count for all of them.
func relieve(policy Policy, after *State, decision *Decision, starved []evictionapi.Threshold, pods []*v1.Pod, seen observe.Snapshot, now time.Time) {
	r := relief{policy: policy, state: after, decision: decision, pods: pods, seen: seen, now: now}
	after.Ledger, decision.Uncounted = after.Ledger.WithoutAbsent(pods, now)
	after.Ledger = after.Ledger.Observe(seen.Observations, now)
	after.Reclaims = after.Reclaims.Advance(policy, seen.Observations, now)
	r.retry()
	r.limits()
	for _, shortage := range shortagesOf(policy.Layout, starved) {
		r.serve(shortage)
	}
}

// relief is what the parts of one such decision share.
type relief struct {
	policy   Policy
	state    *State
	decision *Decision
	pods     []*v1.Pod
	seen     observe.Snapshot
	now      time.Time
}

// free is how many more kills may be started. Those that give their pod time may
// hold half of all places, so that an hour of grace keeps nobody from going at once.
func (r *relief) free(atOnce bool) int {
	running, patient := 0, 0
	for _, entry := range r.state.Ledger.Entries {
		if entry.holdsSlot(r.now) {
			running++
			if entry.Eviction.GracePeriodSeconds > immediateGracePeriodSeconds {
				patient++
			}
		}
	}
	free := MaxKills - running
	if !atOnce {
		free = min(free, MaxKills/2-patient)
	}
	return max(0, free)
}

// retry kills again what should have gone and has not.
func (r *relief) retry() {
	for _, uid := range r.state.Ledger.due(r.pods, r.now) {
		if r.free(true) == 0 {
			return
		}
		entry, _ := r.state.Ledger.Of(uid)
		r.again(entry, entry.Eviction.GracePeriodSeconds, Retried)
	}
}

func (r *relief) again(entry Entry, graceSeconds int64, why Again) {
	uid := entry.Eviction.Pod.UID
	r.state.Ledger = r.state.Ledger.again(uid, graceSeconds, r.now)
	entry, _ = r.state.Ledger.Of(uid)
	r.decision.Kills = append(r.decision.Kills, Kill{Eviction: entry.Eviction, Again: why})
}

// limits starts the kills of pods that exceed a limit of their own.
func (r *relief) limits() {
	over := r.decision.OverLimit
	r.decision.OverLimit = nil
	for _, eviction := range over {
		if _, inFlight := r.state.Ledger.Of(eviction.Pod.UID); inFlight || r.policy.Evidence && finished(eviction.Pod) {
			continue
		}
		if r.free(true) == 0 {
			return
		}
		r.decision.OverLimit = append(r.decision.OverLimit, eviction)
		r.start(eviction, gainsOf(r.policy, eviction.Pod, r.seen))
	}
}

func (r *relief) start(eviction Eviction, gains Gains) {
	r.state.Ledger = r.state.Ledger.With(eviction, gains, r.seen.Observations, r.now)
	r.decision.Kills = append(r.decision.Kills, Kill{Eviction: eviction})
}

// shortagesOf groups starved thresholds by what they watch, the most urgent first:
// signals of one and the same filesystem and resource are one shortage. Hard and
// soft ones are apart, hard ones first of all: the pods of one have a second, and
// those of the other their grace.
func shortagesOf(layout observe.Layout, starved []evictionapi.Threshold) []Shortage {
	if len(starved) == 0 {
		return nil
	}
	type watched struct {
		filesystem observe.Filesystem
		resource   v1.ResourceName
		// signal tells those apart that have no filesystem.
		signal evictionapi.Signal
		soft   bool
	}
	places := map[watched]int{}
	var shortages []Shortage
	for _, soft := range []bool{false, true} {
		// The table of signals has memory first: without it a node does nothing else.
		for _, signal := range observe.Signals() {
			traits, _ := observe.TraitsOf(signal)
			key := watched{filesystem: the(layout, traits.Filesystem), resource: traits.Resource, soft: soft}
			if key.filesystem == observe.NoFilesystem {
				key.signal = signal
			}
			for _, t := range starved {
				if t.Signal != signal || threshold.Hard(t) == soft {
					continue
				}
				place, found := places[key]
				if !found {
					place = len(shortages)
					places[key] = place
					shortages = append(shortages, Shortage{Threshold: t, Resource: traits.Resource})
				}
				shortages[place].Starved = append(shortages[place].Starved, t)
			}
		}
	}
	return shortages
}

// serve decides about one shortage.
func (r *relief) serve(shortage Shortage) {
	signal := shortage.Threshold.Signal
	observation := r.seen.Observations[signal]
	traits, _ := observe.TraitsOf(signal)
	if threshold.Hard(shortage.Threshold) && r.nothingToReclaim(traits) {
		r.hasten(signal, traits)
	}
	shortage.Pending = r.state.Ledger.Pending(signal, observation.Time, r.now)
	for _, t := range shortage.Starved {
		// Signals of one filesystem differ in when they were observed at the most.
		goal := threshold.Goal(t, observation.Capacity).Value()
		shortage.Wanted = max(shortage.Wanted, goal-observation.Available-shortage.Pending)
	}
	if shortage.Wanted <= 0 {
		return
	}
	switch {
	case r.policy.Layout.Unsupported:
	case r.reclaims(&shortage, traits, observation):
	default:
		shortage.Ranked = true
		r.choose(&shortage, traits, observation)
	}
	r.decision.Shortages = append(r.decision.Shortages, shortage)
}

// hasten cuts the grace of victims that are still using that of a soft threshold
// and hold some of what is short now (#123872).
func (r *relief) hasten(signal evictionapi.Signal, traits observe.Traits) {
	for _, entry := range r.state.Ledger.Entries {
		gain, known := entry.Gains[signal]
		holds := known && gain >= floor(traits) || !known && traits.Filesystem == observe.NoFilesystem && !traits.Extra
		if entry.Running > 0 && entry.KilledAt.IsZero() && entry.Eviction.GracePeriodSeconds > immediateGracePeriodSeconds && holds {
			r.again(entry, immediateGracePeriodSeconds, Hastened)
		}
	}
}

// nothingToReclaim says whether all steps that could free a filesystem have been
// taken, so that it is on the pods.
func (r *relief) nothingToReclaim(traits observe.Traits) bool {
	one := r.state.Reclaims[the(r.policy.Layout, traits.Filesystem)]
	return !one.Running && one.Next >= len(remedies[r.policy.Layout][traits.Filesystem].reclaim)
}

// choose finds the victims of a shortage.
func (r *relief) choose(shortage *Shortage, traits observe.Traits, observation observe.Observation) {
	signal := shortage.Threshold.Signal
	candidates, spared := candidatesFor(r.policy, traits, signal, r.state.Ledger, r.pods, r.seen)
	c := choice{signal: signal, traits: traits, candidates: candidates, need: shortage.Wanted}
	shortage.Spared = spared
	for _, candidate := range candidates {
		shortage.Candidates = append(shortage.Candidates, candidate.shown(signal))
	}
	free := r.free(threshold.Hard(shortage.Threshold) || r.policy.MaxPodGracePeriodSeconds == 0)
	unknown := r.state.Ledger.unknownOpen(signal, floor(traits), observation.Time, r.now)
	if traits.Stall != observe.NoStall {
		// Shares of a stall do not add up, and an average takes its time to fall: one
		// pod at a time, and the next when the last one's end can be seen.
		free = min(free, 1)
		if r.state.Ledger.anybodyOpen(signal, observation.Time, r.now) {
			free = 0
		}
	}
	victims := c.pick(r.policy, observation, free, shortage.Pending > 0 || unknown)
	if len(victims) == 0 && free > 0 && shortage.Pending == 0 {
		shortage.noteOutside(c, observation)
	}
	for _, victim := range victims {
		eviction := *eviction(r.policy, shortage, victim.Pod, r.seen)
		shortage.Victims = append(shortage.Victims, eviction)
		shortage.Gains = append(shortage.Gains, victim.gains)
		r.start(eviction, victim.gains)
	}
}

// pick returns the victims, at most some. Without evidence the first of the order
// goes, as upstream has it, even if nobody knows what for. Of pods of which nothing
// is known none goes while something is awaited.
func (c choice) pick(policy Policy, observation observe.Observation, most int, awaited bool) []candidate {
	if most == 0 {
		return nil
	}
	if policy.Evidence && !c.helps(observation) {
		return nil
	}
	victims := c.victims(most)
	switch {
	case len(victims) > 0:
	case awaited:
	case !policy.Evidence && len(c.candidates) > 0:
		victims = c.candidates[:1]
	default:
		victims = c.lastResort()
	}
	return victims
}

func (s *Shortage) noteOutside(c choice, observation observe.Observation) {
	s.Outside = true
	s.Held, s.Used = c.held(), observation.Capacity-observation.Available
}

// chooseByEvidence finds the one victim of a pass without ConcurrentKills.
func chooseByEvidence(policy Policy, shortage *Shortage, traits observe.Traits, pods []*v1.Pod, seen observe.Snapshot) {
	signal := shortage.Threshold.Signal
	observation := seen.Observations[signal]
	candidates, spared := candidatesFor(policy, traits, signal, Ledger{}, pods, seen)
	shortage.Spared = spared
	for _, candidate := range candidates {
		shortage.Candidates = append(shortage.Candidates, candidate.shown(signal))
	}
	c := choice{signal: signal, traits: traits, candidates: candidates}
	for _, t := range shortage.Starved {
		if t.Signal == signal {
			c.need = max(c.need, threshold.Goal(t, observation.Capacity).Value()-observation.Available)
		}
	}
	victims := c.pick(policy, observation, 1, false)
	if len(victims) == 0 {
		shortage.noteOutside(c, observation)
		return
	}
	shortage.Victim = eviction(policy, shortage, victims[0].Pod, seen)
}
