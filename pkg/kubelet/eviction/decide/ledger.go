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
	// DecidedAt is when the kill was last asked for; the grace runs from there.
	DecidedAt time.Time
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
	// stillRunning is when a pod that was killed and is not cleaned up is killed
	// again (#81383, #82290): the runtime lost it, or never stopped it.
	stillRunning = 30 * time.Second
	// retryFirst is the pause after a kill that failed; it doubles to retryLast.
	retryFirst = 5 * time.Second
	retryLast  = 5 * time.Minute
)

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
	// Lowest is the least that was available of each signal since something of it
	// was last pending for the first time, and Risen by how much it has risen
	// above that: what has come back so far.
	Lowest, Risen map[evictionapi.Signal]int64
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
		if e.KilledAt.IsZero() {
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
	if now.After(e.DecidedAt.Add(e.grace() + window(signal, promiseMemory, promiseDisk))) {
		return false
	}
	return e.CleanedUpAt.IsZero() || sample.Before(e.CleanedUpAt.Add(window(signal, settleMemory, settleDisk)))
}

// Observe follows how much has come back, and drops the entries that have ended:
// all of their gains have been seen or are not expected any more, and the pod is
// cleaned up.
func (l Ledger) Observe(seen observe.Observations, now time.Time) Ledger {
	after := Ledger{Lowest: map[evictionapi.Signal]int64{}, Risen: map[evictionapi.Signal]int64{}}
	for _, entry := range l.Entries {
		if entry.CleanedUpAt.IsZero() || entry.anyOpen(seen, now) {
			after.Entries = append(after.Entries, entry)
		}
	}
	for signal, observation := range seen {
		expected := after.expected(signal, observation.Time, now)
		if expected == 0 {
			continue
		}
		lowest, followed := l.Lowest[signal]
		if !followed {
			after.Lowest[signal] = observation.Available
			continue
		}
		// What an entry that has ended brought is no part of what the others will.
		gone := max(0, l.expected(signal, time.Time{}, now)-expected)
		lowest = min(lowest+min(gone, math.MaxInt64-max(lowest, 0)), observation.Available)
		after.Lowest[signal] = lowest
		after.Risen[signal] = max(l.Risen[signal]-gone, observation.Available-lowest, 0)
	}
	return after
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
	l.Entries = append(slices.Clone(l.Entries), Entry{Eviction: eviction, Gains: gains, DecidedAt: now, Attempts: 1, Running: 1})
	lowest := maps.Clone(l.Lowest)
	if lowest == nil {
		lowest = map[evictionapi.Signal]int64{}
	}
	for signal := range gains {
		if _, followed := lowest[signal]; !followed {
			lowest[signal] = seen[signal].Available
		}
	}
	l.Lowest = lowest
	return l
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
func (l Ledger) again(uid types.UID, graceSeconds int64, now time.Time) Ledger {
	return l.change(uid, func(e *Entry) {
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

// WithoutAbsent drops the entries of pods that are neither running nor have a
// kill that runs: whoever deleted them has cleaned up.
func (l Ledger) WithoutAbsent(active []*v1.Pod, now time.Time) Ledger {
	for _, e := range l.Entries {
		uid := e.Eviction.Pod.UID
		absent := !slices.ContainsFunc(active, func(pod *v1.Pod) bool { return pod.UID == uid })
		if absent && e.Running == 0 && e.CleanedUpAt.IsZero() {
			l = l.CleanedUp(uid, now)
		}
	}
	return l
}
