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
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Gains are what the end of a pod returns, by signal, in the signal's unit.
type Gains map[evictionapi.Signal]int64

// Entry is a victim in flight: from the decision until the stats show what its
// end returned. Times are zero until they have come.
type Entry struct {
	Eviction Eviction
	Gains    Gains
	// DecidedAt is when the kill was last asked for, and PromisedAt when the gains
	// were counted on: a kill that is tried again renews no promise.
	DecidedAt, PromisedAt time.Time
	// KilledAt is when a kill succeeded, and CleanedUpAt when everything that the
	// pod held was reported to be given back.
	KilledAt, CleanedUpAt time.Time
	// Attempts is how often a kill was asked for, and Running how many of them
	// have not returned.
	Attempts, Running int
	// RetryAt is when the next is due after a failure.
	RetryAt time.Time
	// Counted: the eviction is in kubelet_evictions.
	Counted bool
	// AwaitedUntil is set for an entry that a kubelet took over which has just started:
	// until the pod is seen or that time has come, its absence means nothing. The
	// kubelet knows its pods a while after its start.
	AwaitedUntil time.Time
	// Returned is by how much a signal had risen when its return was awaited no more,
	// while others still were.
	Returned Gains
}

// Bounds of what a promise is worth. A pod that has been told to stop returns
// memory and processes as it ends, and a filesystem after its container and
// volumes are removed, which takes runtimes a minute or two (#127864).
const (
	promiseMemory = 30 * time.Second
	promiseDisk   = 3 * time.Minute
	// settle is how long after the clean-up a sample must be taken to show it.
	settleMemory = 2 * time.Second
	settleDisk   = time.Minute
	// After three of its time constants an average has forgotten all but a twentieth.
	settleAvg10 = 30 * time.Second
	settleAvg60 = 3 * time.Minute
	// stillRunning is when a pod that was killed and is not cleaned up is killed
	// again (#81383, #82290): the runtime lost it, or never stopped it.
	stillRunning = 30 * time.Second
	// retryFirst is the pause after a kill that failed; it doubles to retryLast.
	retryFirst = 5 * time.Second
	retryLast  = 5 * time.Minute
)

// settle is how long after a clean-up a sample of a signal must be taken to show it:
// for a pressure, when the average has forgotten what was before.
func settle(signal evictionapi.Signal) time.Duration {
	switch traits, _ := observe.TraitsOf(signal); traits.Stall {
	case observe.SomeAvg10, observe.FullAvg10:
		return settleAvg10
	case observe.SomeAvg60, observe.FullAvg60:
		return settleAvg60
	}
	return window(signal, settleMemory, settleDisk)
}

// window returns what holds for a signal of a filesystem, and of none.
func window(signal evictionapi.Signal, memory, disk time.Duration) time.Duration {
	if traits, _ := observe.TraitsOf(signal); traits.Filesystem != observe.NoFilesystem {
		return disk
	}
	return memory
}

// Ledger holds the victims in flight. It is a value: its methods return another
// and leave it as it was.
type Ledger struct {
	Entries []Entry
	// Expected is what was expected of each signal after the last pass; Lowest the
	// least that was available of it since something was expected; and Risen by
	// how much it has risen above that: what has come back so far.
	Expected, Lowest, Risen map[evictionapi.Signal]int64
}

// Of returns the entry of a pod.
func (l Ledger) Of(uid types.UID) (Entry, bool) {
	i := l.index(uid)
	if i < 0 {
		return Entry{}, false
	}
	return l.Entries[i], true
}

func (l Ledger) index(uid types.UID) int {
	return slices.IndexFunc(l.Entries, func(e Entry) bool { return e.Eviction.Pod.UID == uid })
}

// change returns the ledger with a pod's entry changed; without one it is the same.
func (l Ledger) change(uid types.UID, by func(*Entry)) Ledger {
	if i := l.index(uid); i >= 0 {
		l.Entries = slices.Clone(l.Entries)
		by(&l.Entries[i])
	}
	return l
}

// Killed notes that a kill of the pod has succeeded.
func (l Ledger) Killed(uid types.UID, at time.Time) Ledger {
	return l.change(uid, func(e *Entry) {
		e.Running--
		if e.KilledAt.IsZero() {
			e.KilledAt = at
		}
		e.RetryAt = at.Add(stillRunning)
		e.Counted = true
	})
}

// Failed notes that a kill of the pod has failed; it is tried again.
func (l Ledger) Failed(uid types.UID, at time.Time) Ledger {
	return l.change(uid, func(e *Entry) {
		e.Running--
		if e.RetryAt.IsZero() {
			e.RetryAt = at.Add(pause(e.Attempts))
		}
	})
}

// pause doubles with every attempt.
func pause(attempts int) time.Duration {
	return min(retryFirst<<min(max(attempts-1, 0), 10), retryLast)
}

// CleanedUp notes that the pod has given everything back.
func (l Ledger) CleanedUp(uid types.UID, at time.Time) Ledger {
	return l.change(uid, func(e *Entry) {
		if e.CleanedUpAt.IsZero() {
			e.CleanedUpAt = at
		}
	})
}

// open says whether the entry's gain of a signal is still expected: not when a
// sample was taken long enough after the clean-up, nor when the promise is too
// old to be believed.
func (e Entry) open(signal evictionapi.Signal, sample time.Time, now time.Time) bool {
	promise := window(signal, promiseMemory, promiseDisk)
	if traits, _ := observe.TraitsOf(signal); traits.Stall != observe.NoStall {
		promise += settle(signal)
	}
	if now.After(e.PromisedAt.Add(e.grace() + promise)) {
		return false
	}
	return e.CleanedUpAt.IsZero() || sample.Before(e.CleanedUpAt.Add(settle(signal)))
}

// Observe follows how much has come back, and drops the entries that have ended:
// all of their gains have been seen or are not expected any more, and the pod is
// cleaned up.
func (l Ledger) Observe(seen observe.Observations, now time.Time) Ledger {
	after := Ledger{Expected: map[evictionapi.Signal]int64{}, Lowest: map[evictionapi.Signal]int64{}, Risen: map[evictionapi.Signal]int64{}}
	for _, entry := range l.Entries {
		if entry.CleanedUpAt.IsZero() || entry.anyOpen(seen, now) {
			after.Entries = append(after.Entries, entry)
		}
	}
	for signal, before := range l.Expected {
		observation, found := seen[signal]
		if !found {
			// Nothing is known of it in this pass, and nothing changes.
			after.Expected[signal], after.Lowest[signal], after.Risen[signal] = before, l.Lowest[signal], l.Risen[signal]
			continue
		}
		expected := after.expected(signal, observation.Time, now)
		if expected == 0 {
			after.returned(signal, max(l.Risen[signal], observation.Available-l.Lowest[signal], 0))
			continue
		}
		// What an entry brought that has ended, or is believed no more, is no part of
		// what the others will.
		gone := max(0, before-expected)
		lowest := min(l.Lowest[signal]+min(gone, math.MaxInt64-max(l.Lowest[signal], 0)), observation.Available)
		after.Expected[signal], after.Lowest[signal] = expected, lowest
		after.Risen[signal] = max(l.Risen[signal]-gone, observation.Available-lowest, 0)
	}
	return after
}

// returned notes for all who promised some of a signal what has come of it.
func (l Ledger) returned(signal evictionapi.Signal, risen int64) {
	for i := range l.Entries {
		e := &l.Entries[i]
		if _, noted := e.Returned[signal]; noted || e.Gains[signal] <= 0 {
			continue
		}
		returned := maps.Clone(e.Returned)
		if returned == nil {
			returned = Gains{}
		}
		returned[signal] = risen
		e.Returned = returned
	}
}

// Settled is a victim whose return is awaited no more.
type Settled struct {
	Entry Entry
	// Measured is by how much each signal of its gains has risen since it was in
	// flight. Whatever else grew or shrank meanwhile is in it too, and victims in
	// flight together share one rise.
	Measured Gains
}

// Settled returns the victims that are in this ledger and not in the one after it.
func (l Ledger) Settled(after Ledger, seen observe.Observations) []Settled {
	var settled []Settled
	for _, entry := range l.Entries {
		if after.index(entry.Eviction.Pod.UID) >= 0 {
			continue
		}
		measured := Gains{}
		for signal := range entry.Gains {
			observation, found := seen[signal]
			// What nothing is expected of is not followed.
			if noted, known := entry.Returned[signal]; known {
				measured[signal] = noted
			} else if lowest, followed := l.Lowest[signal]; found && followed {
				measured[signal] = max(l.Risen[signal], observation.Available-lowest, 0)
			}
		}
		settled = append(settled, Settled{Entry: entry, Measured: measured})
	}
	return settled
}

func (e Entry) anyOpen(seen observe.Observations, now time.Time) bool {
	for signal, gain := range e.Gains {
		if gain > 0 && e.open(signal, seen[signal].Time, now) {
			return true
		}
	}
	return false
}

func (l Ledger) expected(signal evictionapi.Signal, sample, now time.Time) int64 {
	sum := int64(0)
	for _, entry := range l.Entries {
		if entry.open(signal, sample, now) {
			sum += min(entry.Gains[signal], math.MaxInt64-sum)
		}
	}
	return sum
}

// Pending returns how much of a signal the victims in flight are yet to return,
// by a sample of a time.
func (l Ledger) Pending(signal evictionapi.Signal, sample, now time.Time) int64 {
	return max(0, l.expected(signal, sample, now)-l.Risen[signal])
}

// With returns the ledger with a victim more, whose kill is asked for now. What
// was seen is where the return of its gains begins.
func (l Ledger) With(eviction Eviction, gains Gains, seen observe.Observations, now time.Time) Ledger {
	l.Entries = append(slices.Clone(l.Entries), Entry{Eviction: eviction, Gains: gains, DecidedAt: now, PromisedAt: now, Attempts: 1, Running: 1})
	expected, lowest := maps.Clone(l.Expected), maps.Clone(l.Lowest)
	if expected == nil {
		expected = map[evictionapi.Signal]int64{}
	}
	if lowest == nil {
		lowest = map[evictionapi.Signal]int64{}
	}
	for signal, gain := range gains {
		if _, followed := expected[signal]; !followed {
			lowest[signal] = seen[signal].Available
		}
		expected[signal] += min(gain, math.MaxInt64-expected[signal])
	}
	l.Expected, l.Lowest = expected, lowest
	return l
}

// anybodyOpen says whether any victim's end is still to be seen in a signal.
func (l Ledger) anybodyOpen(signal evictionapi.Signal, sample, now time.Time) bool {
	return slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.open(signal, sample, now) })
}

// unknownOpen says whether a victim is in flight of which nobody knows what it
// returns of a signal: until that is seen, another would be one too many.
func (l Ledger) unknownOpen(signal evictionapi.Signal, least int64, sample, now time.Time) bool {
	return slices.ContainsFunc(l.Entries, func(e Entry) bool {
		gain, known := e.Gains[signal]
		return (!known || gain < least) && e.open(signal, sample, now)
	})
}

// holdsSlot says whether a kill of the entry runs and counts for how many may: one
// that hangs beyond its grace holds back nobody.
func (e Entry) holdsSlot(now time.Time) bool {
	return e.Running > 0 && !now.After(e.DecidedAt.Add(e.grace()+promiseMemory))
}

func (e Entry) grace() time.Duration {
	return time.Duration(min(max(e.Eviction.GracePeriodSeconds, 0), math.MaxInt32)) * time.Second
}

// again returns the ledger with another kill of a pod asked for now, with a grace.
// A shorter grace brings the promise forward.
func (l Ledger) again(uid types.UID, graceSeconds int64, now time.Time) Ledger {
	return l.change(uid, func(e *Entry) {
		if graceSeconds < e.Eviction.GracePeriodSeconds {
			e.PromisedAt = now
		}
		e.Eviction.GracePeriodSeconds = graceSeconds
		e.DecidedAt = now
		e.RetryAt = time.Time{}
		e.Attempts++
		e.Running++
	})
}

// due lists the pods whose kill is to be tried again: it failed, or the pod is
// still among those that run.
func (l Ledger) due(active []*v1.Pod, now time.Time) []types.UID {
	var uids []types.UID
	for _, e := range l.Entries {
		uid := e.Eviction.Pod.UID
		stillThere := slices.ContainsFunc(active, func(pod *v1.Pod) bool { return pod.UID == uid })
		if e.Running == 0 && e.CleanedUpAt.IsZero() && !e.RetryAt.IsZero() && !now.Before(e.RetryAt) && stillThere {
			uids = append(uids, uid)
		}
	}
	return uids
}

// WithoutAbsent ends the entries of pods that are no more among those that run,
// and that nobody will report as cleaned up: their kill did not succeed, or it did
// so long ago that the promise is worth nothing. It also returns those of them
// that have not been counted as evictions: a kill that was given up as too slow
// may have ended the pod all the same.
func (l Ledger) WithoutAbsent(active []*v1.Pod, now time.Time) (after Ledger, uncounted []Eviction) {
	for _, e := range l.Entries {
		uid := e.Eviction.Pod.UID
		absent := !slices.ContainsFunc(active, func(pod *v1.Pod) bool { return pod.UID == uid })
		if !absent && !e.AwaitedUntil.IsZero() {
			at := slices.IndexFunc(active, func(pod *v1.Pod) bool { return pod.UID == uid })
			l = l.change(uid, func(e *Entry) { e.Eviction.Pod, e.AwaitedUntil = active[at], time.Time{} })
			continue
		}
		if absent && now.Before(e.AwaitedUntil) {
			continue
		}
		unreported := e.KilledAt.IsZero() || now.After(e.PromisedAt.Add(e.grace()+promiseDisk))
		if !absent || e.Running > 0 || !e.CleanedUpAt.IsZero() || !unreported {
			continue
		}
		if !e.Counted {
			uncounted = append(uncounted, e.Eviction)
		}
		l = l.change(uid, func(e *Entry) { e.CleanedUpAt, e.Counted = now, true })
	}
	return l, uncounted
}

// podsKnown is how long after its start a kubelet may not know all of its pods: until
// it has them from the API server.
const podsKnown = time.Minute

// Adopt returns the ledger of a kubelet that has just started from the one of the
// kubelet before: no kill runs, those that had not succeeded are due at once and
// promise anew, and each pod is awaited for a while.
func (l Ledger) Adopt(now time.Time) Ledger {
	l.Entries = slices.Clone(l.Entries)
	for i := range l.Entries {
		e := &l.Entries[i]
		e.Running, e.AwaitedUntil = 0, now.Add(podsKnown)
		if e.KilledAt.IsZero() {
			e.RetryAt, e.PromisedAt = now, now
		}
	}
	return l
}
