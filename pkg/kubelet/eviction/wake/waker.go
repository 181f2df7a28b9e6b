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

package wake

import (
	"context"
	"slices"
	"sync"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Reason says why a pass is made.
type Reason string

// The reasons.
const (
	Start    Reason = "start"    // the manager has just started
	Interval Reason = "interval" // the time between two passes is over
	Eviction Reason = "eviction" // pods were evicted, and are cleaned up or not
	Crossing Reason = "crossing" // a probe saw a threshold crossed, or about to be
	Memcg    Reason = "memcg"    // the kernel saw a memory threshold crossed
	Grace    Reason = "grace"    // the grace period of a threshold is over
	Outcome  Reason = "outcome"  // a kill or a reclaim has ended
	Trend    Reason = "trend"    // the summaries say that a threshold comes near
)

// Wake is what woke the loop.
type Wake struct {
	Reason Reason
	// At is when it happened; the pass may be a little later.
	At time.Time
	// Seen holds what the probe read of the signals that crossed.
	Seen observe.Observations
}

// minGap keeps a storm of wake-ups from taking the processor: a pass of a full
// node takes some milliseconds (make bench).
const minGap = 20 * time.Millisecond

// Waker lets the loop sleep until it is time for a pass. Wake-ups that come
// while a pass is made are kept, as one.
type Waker struct {
	mu      sync.Mutex
	pending *Wake
	arrived chan struct{}
	// passed is when the loop last began to wait.
	passed time.Time
}

// NewWaker returns a waker that nobody has woken yet.
func NewWaker() *Waker {
	return &Waker{arrived: make(chan struct{}, 1)}
}

// Wake wakes the loop. It never blocks, and may be called from anywhere.
func (w *Waker) Wake(wake Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending == nil {
		w.pending = &wake
	} else {
		// The first says since when; the later has the later numbers.
		for signal, seen := range wake.Seen {
			if w.pending.Seen == nil {
				w.pending.Seen = observe.Observations{}
			}
			w.pending.Seen[signal] = seen
		}
	}
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// Wait returns when the loop is woken, with what woke it, or after a time, with
// due. When the context ends it returns at once. It is for one goroutine.
func (w *Waker) Wait(ctx context.Context, after time.Duration, due Reason) Wake {
	w.passed = time.Now()
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return Wake{Reason: due, At: time.Now()}
		case <-timer.C:
			if wake := w.take(); wake != nil {
				w.keepGap(ctx)
				return *wake // it came at the same moment, and knows more
			}
			return Wake{Reason: due, At: time.Now()}
		case <-w.arrived:
			if wake := w.take(); wake != nil {
				w.keepGap(ctx)
				return *wake
			}
		}
	}
}

func (w *Waker) take() *Wake {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := w.pending
	w.pending = nil
	return wake
}

func (w *Waker) keepGap(ctx context.Context) {
	if rest := minGap - time.Since(w.passed); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// Stale lists the signals that crossed and of which the observations are older
// than the crossing, or absent.
func (w Wake) Stale(seen observe.Observations) []evictionapi.Signal {
	var stale []evictionapi.Signal
	for signal, probed := range w.Seen {
		if o, found := seen[signal]; !found || !o.Time.IsZero() && o.Time.Before(probed.Time) {
			stale = append(stale, signal)
		}
	}
	slices.Sort(stale)
	return stale
}

// confirmation is how far a summary's number may be from the probe's and still
// be the same, in parts of the capacity.
const confirmation = 100

// Confirm gives observations that are older than the crossing, and that the
// probe read alike a moment ago, the time of the probe: they are as good as new.
// A number that differs stays as old as it is.
func (w Wake) Confirm(seen observe.Observations) {
	for _, signal := range w.Stale(seen) {
		o, found := seen[signal]
		probed := w.Seen[signal]
		difference := o.Available - probed.Available
		if found && difference <= o.Capacity/confirmation && -difference <= o.Capacity/confirmation {
			o.Time = probed.Time
			seen[signal] = o
		}
	}
}
