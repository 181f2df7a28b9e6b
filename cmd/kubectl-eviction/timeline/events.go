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

package timeline

import (
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// Kill is an eviction from the decision to when it is awaited no more. A time that
// is zero did not come or is not recorded.
type Kill struct {
	// Number counts the kills of the drawing, from 1.
	Number  int
	Pod     journal.PodRef
	Grace   time.Duration
	Cause   string
	Message string

	Decided, Killed, CleanedUp time.Time
	// Lost is when it was in flight no more though no end of it is recorded.
	Lost time.Time
	// Slow is when it had exceeded its grace period by far.
	Slow time.Time
	// Failures are when the kill failed, and Again when it was done once more.
	Failures []Trouble
	Again    []Trouble
}

// Trouble is something about a kill that did not go as it should.
type Trouble struct {
	At   time.Time
	What string
}

// mostTroubles is how many are kept of one kill; a runtime that does not answer
// makes a kill fail every few seconds.
const mostTroubles = 64

func addTrouble(to *[]Trouble, at time.Time, what string) {
	if len(*to) < mostTroubles {
		*to = append(*to, Trouble{at, what})
	}
}

// End is the last that is known of the kill, zero while it is in flight.
func (k *Kill) End() time.Time {
	switch {
	case !k.CleanedUp.IsZero():
		return k.CleanedUp
	case !k.Lost.IsZero():
		return k.Lost
	}
	return time.Time{}
}

// Reclaim is an order to free something without touching pods, and its outcome.
type Reclaim struct {
	From, To   time.Time
	Filesystem string
	Steps      []string
	Signal     evictionapi.Signal
	// Wanted and Freed are in the signal's unit; Freed is nil where it is unknown.
	Wanted  int64
	Freed   *int64
	Claimed int64
}

// Release is how much came back of what victims held.
type Release struct {
	At     time.Time
	After  time.Duration
	Pod    journal.PodRef
	Number int
	Cause  string
	// Amounts of the signals of which something was expected, in their table's order.
	Amounts []Amount
}

// Amount of a signal that a release is about.
type Amount struct {
	Signal             evictionapi.Signal
	Expected, Measured int64
}

// Note is something else that a reader must know.
type Note struct {
	At   time.Time
	What string
}

// reasons are those of wake-ups, in the order of their rows; the last stands for
// any other.
var reasons = [...]string{"start", "interval", "eviction", "crossing", "memcg", "grace", "outcome", "trend", "other"}

func reasonRow(reason string) int {
	for i, known := range reasons {
		if reason == known {
			return i
		}
	}
	return len(reasons) - 1
}

// Tick is a number of passes woken by one reason.
type Tick struct {
	At              time.Time
	Passes, Decided int
	// Slowest is the longest time from the wake-up to the pass.
	Slowest time.Duration
}

// Ticks are the passes of a bucket by the row of their reason.
type Ticks [len(reasons)]Tick

func (t Ticks) join(later Ticks) Ticks {
	for i := range t {
		switch {
		case later[i].Passes == 0:
		case t[i].Passes == 0:
			t[i] = later[i]
		default:
			t[i].Passes += later[i].Passes
			t[i].Decided += later[i].Decided
			t[i].Slowest = max(t[i].Slowest, later[i].Slowest)
		}
	}
	return t
}
