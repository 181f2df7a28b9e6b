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
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// This file follows what passes decide to what comes of it.

func podKey(pod journal.PodRef) string {
	return cmp.Or(string(pod.UID), pod.String())
}

// draw gives a kill its number and its place; from then on it is one of the drawing.
func (c *Collector) draw(k *Kill) {
	if c.drawn[k] || !c.overlaps(k.Decided, k.End()) {
		return
	}
	c.drawn[k] = true
	k.Number = c.t.Kills.Count() + 1
	at := k.Decided
	if at.Before(c.window.From) {
		at = c.window.From
	}
	c.t.Kills.add(at, k)
}

// drawFlight draws the kills from before the window that are in flight in it.
func (c *Collector) drawFlight() {
	if len(c.drawn) == len(c.flight) {
		return
	}
	for _, k := range slices.SortedFunc(maps.Values(c.flight), func(a, b *Kill) int {
		return cmp.Or(a.Decided.Compare(b.Decided), strings.Compare(a.Pod.String(), b.Pod.String()))
	}) {
		c.draw(k)
	}
}

// started takes a kill that a record tells of; one that is in flight already is not
// another one.
func (c *Collector) started(pod journal.PodRef, k Kill) *Kill {
	if known, found := c.flight[podKey(pod)]; found {
		return known
	}
	k.Pod = pod
	c.flight[podKey(pod)] = &k
	if !k.Decided.Before(c.window.From) {
		c.draw(&k)
	}
	return &k
}

func (c *Collector) evicted(r *journal.Record, e journal.Eviction) *Kill {
	return c.started(e.PodRef, Kill{Grace: time.Duration(e.GraceSeconds) * time.Second, Cause: e.Cause, Message: e.Message, Decided: r.Time})
}

// kills takes those that a pass started, and lets go of those it awaits no more.
func (c *Collector) kills(r *journal.Record) {
	inFlight := map[string]bool{}
	if r.State != nil {
		for i := range r.State.InFlight {
			e := &r.State.InFlight[i]
			inFlight[podKey(e.PodRef)] = true
			k := Kill{
				Grace: time.Duration(e.GraceSeconds) * time.Second, Cause: e.Cause, Message: e.Message, Decided: r.Time.Add(-time.Duration(e.Decided)),
			}
			if e.Killed != nil {
				k.Killed = r.Time.Add(-time.Duration(*e.Killed))
			}
			if e.CleanedUp != nil {
				k.CleanedUp = r.Time.Add(-time.Duration(*e.CleanedUp))
			}
			known := c.started(e.PodRef, k)
			if known.Killed.IsZero() {
				known.Killed = k.Killed
			}
			if known.CleanedUp.IsZero() {
				known.CleanedUp = k.CleanedUp
			}
		}
	}
	if r.Decision != nil {
		for i := range r.Decision.Kills {
			kill := &r.Decision.Kills[i]
			inFlight[podKey(kill.PodRef)] = true
			known := c.evicted(r, kill.Eviction)
			if kill.Again != "" {
				addTrouble(&known.Again, r.Time, kill.Again)
			}
		}
		if !c.policy.ConcurrentKills {
			for _, eviction := range r.Decision.OverLimit {
				c.evicted(r, eviction)
			}
			for i := range r.Decision.Shortages {
				for _, victim := range r.Decision.Shortages[i].Victims {
					c.evicted(r, victim.Eviction)
				}
			}
		}
	}
	if !c.policy.ConcurrentKills {
		return // each is over when its outcome is there
	}
	for key, k := range c.flight {
		if !inFlight[key] && k.Decided.Before(r.Time) {
			if k.CleanedUp.IsZero() {
				k.Lost = r.Time
			}
			c.landed(key, k)
		}
	}
}

// landed forgets a kill; the drawing has it.
func (c *Collector) landed(key string, k *Kill) {
	delete(c.flight, key)
	delete(c.drawn, k)
}

// outcome takes what came of a kill or a reclaim.
func (c *Collector) outcome(r *journal.Record) {
	o := r.Outcome
	if o.Reclaim != nil {
		c.reclaimed(r)
	}
	if o.Pod == nil {
		return
	}
	k := c.started(*o.Pod, Kill{Decided: r.Time.Add(-time.Duration(o.Took))})
	switch o.Kind {
	case journal.OutcomeKilled:
		k.Killed = r.Time
		if !c.policy.ConcurrentKills {
			k.CleanedUp = r.Time
			c.landed(podKey(*o.Pod), k)
		}
	case journal.OutcomeCleanedUp:
		k.CleanedUp = r.Time
	case journal.OutcomeKillSlow:
		k.Slow = r.Time
	case journal.OutcomeKillFailed:
		addTrouble(&k.Failures, r.Time, cmp.Or(o.Error, "it failed"))
		if !c.policy.ConcurrentKills {
			k.Lost = r.Time
			c.landed(podKey(*o.Pod), k)
		}
	}
}

// ordered takes the reclaims that a pass asks for.
func (c *Collector) ordered(r *journal.Record) {
	if r.Decision == nil {
		return
	}
	for _, order := range r.Decision.Reclaims {
		c.reclaiming(&Reclaim{From: r.Time, Filesystem: order.Filesystem, Steps: order.Steps, Signal: order.Signal, Wanted: order.Wanted})
	}
	if len(r.Decision.Reclaims) > 0 {
		return
	}
	for i := range r.Decision.Shortages {
		if s := &r.Decision.Shortages[i]; len(s.Reclaim) > 0 {
			reclaim := &Reclaim{From: r.Time, Filesystem: string(s.Resource), Steps: s.Reclaim, Wanted: s.Wanted}
			if len(s.Thresholds) > 0 {
				reclaim.Signal = s.Thresholds[0].Signal
			}
			c.reclaiming(reclaim)
		}
	}
}

func (c *Collector) reclaiming(reclaim *Reclaim) {
	c.reclaims[reclaim.Filesystem] = reclaim
	if c.window.has(reclaim.From) {
		c.t.Reclaims.add(reclaim.From, reclaim)
	}
}

func (c *Collector) reclaimed(r *journal.Record) {
	o := r.Outcome.Reclaim
	reclaim, found := c.reclaims[o.Filesystem]
	if !found || !reclaim.To.IsZero() {
		reclaim = &Reclaim{From: r.Time.Add(-time.Duration(r.Outcome.Took)), Filesystem: o.Filesystem, Steps: o.Steps, Signal: o.Signal, Wanted: o.Wanted}
		c.reclaiming(reclaim)
	}
	reclaim.To, reclaim.Freed, reclaim.Claimed = r.Time, o.Freed, o.Claimed
}

// released takes what came back of what victims held.
func (c *Collector) released(r *journal.Record) {
	for i := range r.Released {
		written := &r.Released[i]
		release := &Release{At: r.Time, After: time.Duration(written.After), Pod: written.Pod}
		key := podKey(written.Pod)
		if k, found := c.flight[key]; found {
			release.Number, release.Cause = k.Number, k.Cause
		}
		for _, signal := range observe.Signals() {
			if expected := written.Expected[signal]; expected > 0 {
				release.Amounts = append(release.Amounts, Amount{signal, expected, written.Measured[signal]})
			}
		}
		if c.window.has(r.Time) {
			c.t.Releases.add(r.Time, release)
		}
	}
}
