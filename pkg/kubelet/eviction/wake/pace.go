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

import "time"

// How often a probe is read. At 50 ms a leak of 2 GiB/s loses 100 MiB between
// two looks, a tenth of the smallest threshold in use on nodes that large; a
// read of all signals takes some 50 us, so this is a tenth of a percent of one
// core. At the slow pace it is nothing.
const (
	fastestPace = 50 * time.Millisecond
	slowestPace = time.Second
)

// burst is by how much of its capacity a resource may be taken in a second
// without any warning, one part of: 2 GiB/s on a node of 16 GiB, 25 GiB/s of a
// disk of 200 GiB. However steady a signal has been, it is looked at before
// that would take it below its threshold.
const burst = 8

// hover is how far above its threshold a signal has to be, in parts of the capacity,
// so that the next crossing is news at once: one that hovers around it does not
// wake the loop twenty times a second.
const hover = 100

// stillBelow is how long after a wake-up the loop is woken again for a threshold
// that stays crossed. The time doubles up to the longest: with nothing left to
// do there is no use in haste.
const (
	stillBelow        = time.Second
	stillBelowLongest = 10 * time.Second
)

// watch follows one threshold's headroom from look to look. The zero value has
// seen nothing.
type watch struct {
	headroom int64
	at       time.Time
	// loss is what is lost a second: the latest, or half of what it was before,
	// whichever is more.
	loss float64
	// wokenAt is when the loop was last woken while the threshold was crossed, at
	// that headroom, and pause how long it is left alone from then on.
	below    bool
	wokenAt  time.Time
	wokenFor int64
	pause    time.Duration
	// soonAt is when the loop was last woken for what was about to happen.
	soonAt time.Time
}

// see takes a reading: the headroom, which is what is available above the
// threshold, and the capacity. It returns how long the next look can wait, and
// whether the loop is to be woken: because the threshold is crossed, because it
// will be before another look, or because it has been for a while.
func (w *watch) see(headroom, capacity int64, now time.Time) (next time.Duration, wakeUp bool) {
	if elapsed := now.Sub(w.at).Seconds(); !w.at.IsZero() && elapsed > 0 {
		w.loss = max((float64(w.headroom)-float64(headroom))/elapsed, w.loss/2, 0)
	}
	w.headroom, w.at = headroom, now
	if headroom < 0 {
		return w.crossed(capacity, now)
	}
	if headroom > capacity/hover || now.Sub(w.wokenAt) >= w.pause {
		w.below, w.pause = false, 0
	}
	next = slowestPace
	if w.loss > 0 {
		// A third of the time left: looks get closer as the threshold does.
		left := seconds(float64(headroom) / w.loss)
		next = min(next, left/3)
		if left < fastestPace {
			soon := now.Sub(w.soonAt) >= stillBelow
			if soon {
				w.soonAt = now
			}
			return fastestPace, soon
		}
	}
	if capacity > 0 {
		next = min(next, seconds(float64(headroom)/(float64(capacity)/burst)))
	}
	return max(next, fastestPace), false
}

func (w *watch) crossed(capacity int64, now time.Time) (time.Duration, bool) {
	fell := w.wokenFor-w.headroom > capacity/100
	switch {
	case !w.below:
		w.pause = stillBelow
	case fell:
		// Another percent is gone: what was decided is not enough.
	case now.Sub(w.wokenAt) < w.pause:
		return max(fastestPace, min(slowestPace, w.pause/8)), false
	default:
		w.pause = min(2*w.pause, stillBelowLongest)
	}
	w.below, w.wokenAt, w.wokenFor = true, now, w.headroom
	return fastestPace, true
}

// seconds converts without overflow.
func seconds(s float64) time.Duration {
	if s > time.Hour.Seconds() {
		return time.Hour
	}
	return time.Duration(s * float64(time.Second))
}
