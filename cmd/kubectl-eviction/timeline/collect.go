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

// Package timeline draws a journal: what was available of each signal against its
// thresholds, and what was done about it. Collect takes records in and keeps, in
// memory that does not grow with the journal, what a drawing of it can show; SVG and
// HTML draw it.
package timeline

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// silence is how long no record must come for nothing to be known of the time:
// six of the kubelet's intervals, a heartbeat each.
const silence = time.Minute

// nearness is how many times a threshold a signal has at the least to be far from
// it, as in the journal.
const nearness = 2

// Window is a time to draw; zero times leave it open.
type Window struct{ From, To time.Time }

func (w Window) has(t time.Time) bool {
	return (w.From.IsZero() || !t.Before(w.From)) && (w.To.IsZero() || !t.After(w.To))
}

// Kind is that of a threshold.
type Kind int

// The kinds.
const (
	Hard Kind = iota
	Soft
)

// Limit is a threshold of a signal over time.
type Limit struct {
	Series
	// Grace period of a soft one.
	Grace time.Duration
	// Last value that it had.
	Last  int64
	epoch int
}

// Signal is what is drawn of one.
type Signal struct {
	Name      evictionapi.Signal
	Available Series
	Limits    [2]Limit
	// Goal is what must be available for a threshold that was met to be resolved,
	// while that is pending.
	Goal Limit
	// Near: less than twice a threshold was left. Met: one was met.
	Near, Met bool
	// Unknown counts the passes whose number could not be true.
	Unknown int
	// Capacity is the highest that was seen.
	Capacity int64

	last  time.Time
	epoch int
}

// Timeline is all that a drawing shows.
type Timeline struct {
	Node, Kubelet string
	// First and Last are the times of the journal's records, From and To those of
	// the drawing.
	First, Last, From, To time.Time
	// Records and Passes in the drawing, those of the passes that Acted, and records
	// that were Dropped.
	Records, Passes, Acted int
	Dropped                uint64
	Signals                []*Signal
	Conditions             map[v1.NodeConditionType]*Spans
	Gaps                   Spans
	Wakes                  thinned[Ticks]
	Kills                  Lane[*Kill]
	Reclaims               Lane[*Reclaim]
	Releases               Lane[*Release]
	Notes                  Lane[*Note]
}

// Collector makes a Timeline of records. It is for one goroutine.
type Collector struct {
	window  Window
	only    []evictionapi.Signal
	t       Timeline
	policy  decide.Policy
	config  *journal.Config
	signals map[evictionapi.Signal]*Signal
	before  struct {
		sequence uint64
		time     time.Time
	}
	// epoch counts the gaps; a series is broken where it has changed.
	epoch    int
	standing map[v1.NodeConditionType]time.Time
	flight   map[string]*Kill
	drawn    map[*Kill]bool
	reclaims map[string]*Reclaim
}

// NewCollector begins a timeline of a window; only names the signals to draw, none
// those that have a threshold or were near one.
func NewCollector(window Window, only []evictionapi.Signal) *Collector {
	return &Collector{
		window: window, only: only, signals: map[evictionapi.Signal]*Signal{}, standing: map[v1.NodeConditionType]time.Time{},
		flight: map[string]*Kill{}, drawn: map[*Kill]bool{}, reclaims: map[string]*Reclaim{},
		t: Timeline{Conditions: map[v1.NodeConditionType]*Spans{}},
	}
}

// Add takes the next record, of which it keeps nothing. A configuration that cannot
// be read is an error.
func (c *Collector) Add(r *journal.Record) error {
	if c.t.First.IsZero() || r.Time.Before(c.t.First) {
		c.t.First = r.Time
	}
	if r.Time.After(c.t.Last) {
		c.t.Last = r.Time
	}
	c.gap(r)
	inside := c.window.has(r.Time)
	if inside {
		c.t.Records++
		c.t.Dropped += r.Dropped
		c.drawFlight()
	}
	switch r.Kind {
	case journal.KindConfig:
		return c.configured(r)
	case journal.KindOutcome:
		c.outcome(r)
	case journal.KindPass, journal.KindHeartbeat:
		if inside {
			c.pass(r)
		}
		c.conditions(r)
		c.kills(r)
		c.ordered(r)
		c.released(r)
	}
	return nil
}

// gap looks for what lies between this record and the one before.
func (c *Collector) gap(r *journal.Record) {
	before := c.before
	c.before.sequence, c.before.time = r.Sequence, r.Time
	if before.time.IsZero() {
		if r.Dropped > 0 {
			c.note(r.Time, fmt.Sprintf("%d records before this could not be written", r.Dropped))
		}
		return
	}
	var what string
	switch quiet := r.Time.Sub(before.time); {
	case r.Dropped > 0:
		what = fmt.Sprintf("%d records could not be written", r.Dropped)
	case r.Sequence <= before.sequence:
		what = "the kubelet was restarted"
	case r.Sequence > before.sequence+1:
		what = fmt.Sprintf("%d records are missing", r.Sequence-before.sequence-1)
	case quiet > silence:
		what = "no records for " + ago(quiet)
	case quiet < 0:
		what = "the clock was set back by " + ago(-quiet)
	default:
		return
	}
	c.epoch++
	from, to := before.time, r.Time
	if to.Before(from) {
		from = to
	}
	if c.overlaps(from, to) {
		c.t.Gaps.add(Span{From: from, To: to, What: what})
	}
}

func (c *Collector) overlaps(from, to time.Time) bool {
	return (c.window.To.IsZero() || !from.After(c.window.To)) && (c.window.From.IsZero() || to.IsZero() || !to.Before(c.window.From))
}

func (c *Collector) note(at time.Time, what string) {
	if c.window.has(at) {
		c.t.Notes.add(at, &Note{at, what})
	}
}

func (c *Collector) configured(r *journal.Record) error {
	policy, err := r.Config.Policy()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", r.Sequence, r.Time.Format(time.RFC3339Nano), err)
	}
	c.policy = policy
	config := *r.Config
	if c.config != nil && texts(c.config.Thresholds) != texts(config.Thresholds) {
		c.note(r.Time, "the thresholds are now "+texts(config.Thresholds))
	}
	c.config = &config
	c.t.Node, c.t.Kubelet = config.Node, config.Kubelet
	return nil
}

// texts writes the thresholds that watch something.
func texts(thresholds []journal.Threshold) string {
	text := ""
	for _, t := range thresholds {
		if t.Operator == evictionapi.OpLessThan && !isContainerFs(t.Signal) {
			if text != "" {
				text += ", "
			}
			text += t.String()
		}
	}
	return text
}

func isContainerFs(signal evictionapi.Signal) bool {
	traits, known := observe.TraitsOf(signal)
	return known && traits.Filesystem == observe.ContainerFs
}

// wanted says whether a signal may be drawn. That of the container filesystem
// repeats another one's where it is no filesystem of its own.
func (c *Collector) wanted(signal evictionapi.Signal) bool {
	if len(c.only) > 0 {
		return slices.Contains(c.only, signal)
	}
	_, known := observe.TraitsOf(signal)
	return known && (!isContainerFs(signal) || c.policy.Layout.SeparateContainerFs)
}

func (c *Collector) signal(name evictionapi.Signal) *Signal {
	s, found := c.signals[name]
	if !found {
		s = &Signal{Name: name, epoch: -1}
		for i := range s.Limits {
			s.Limits[i].epoch = -1
		}
		s.Goal.epoch = -1
		c.signals[name] = s
	}
	return s
}

// pass takes what was seen.
func (c *Collector) pass(r *journal.Record) {
	c.t.Passes++
	row := Tick{At: r.Time, Passes: 1}
	reason := ""
	if r.Wake != nil {
		reason, row.Slowest = r.Wake.Reason, time.Duration(r.Wake.Latency)
	}
	if r.Decision.Acts() {
		row.Decided = 1
		c.t.Acted++
	}
	var ticks Ticks
	ticks[reasonRow(reason)] = row
	b := c.t.Wakes.at(r.Time)
	*b = b.join(ticks)

	if r.Decision != nil {
		for _, signal := range r.Decision.Unknown {
			if c.wanted(signal) {
				c.signal(signal).Unknown++
				c.note(r.Time, fmt.Sprintf("what was said of %s could not be true", signal))
			}
		}
	}
	for name, o := range r.Observations {
		if c.wanted(name) && (r.Decision == nil || !slices.Contains(r.Decision.Unknown, name)) {
			c.observed(r, name, o)
		}
	}
	for _, s := range c.signals {
		if s.last != r.Time {
			s.epoch = -1 // not observed: what comes next does not follow on what was before
		}
	}
	c.goals(r)
}

func (c *Collector) observed(r *journal.Record, name evictionapi.Signal, o journal.Observation) {
	s := c.signal(name)
	if r.Wake != nil {
		// What the probe read is what woke the pass; the pass may see another.
		if seen, found := r.Wake.Seen[name]; found {
			if at := r.Time.Add(-time.Duration(r.Wake.Latency)); at.After(s.last) && c.window.has(at) {
				s.Available.add(Point{at, seen.Available}, s.epoch != c.epoch)
				s.epoch = c.epoch
			}
		}
	}
	s.Available.add(Point{r.Time, o.Available}, s.epoch != c.epoch)
	s.last, s.epoch = r.Time, c.epoch
	s.Capacity = max(s.Capacity, o.Capacity)
	done := [2]bool{}
	for _, t := range c.policy.Thresholds {
		if t.Signal != name || t.Operator != evictionapi.OpLessThan {
			continue
		}
		kind := Soft
		if threshold.Hard(t) {
			kind = Hard
		}
		if done[kind] {
			continue
		}
		done[kind] = true
		value := threshold.Quantity(t, o.Capacity).Value()
		s.Limits[kind].set(r.Time, value, t.GracePeriod, c.epoch)
		s.Near = s.Near || o.Available/nearness < value
	}
}

// set takes the value that a threshold has now; it changes at once, not by and by.
func (l *Limit) set(at time.Time, value int64, grace time.Duration, epoch int) {
	if l.epoch == epoch && l.Last != value {
		l.add(Point{at, l.Last}, false)
	}
	l.add(Point{at, value}, l.epoch != epoch)
	l.Last, l.Grace, l.epoch = value, grace, epoch
}

// goals takes the goals of the thresholds that are met or were.
func (c *Collector) goals(r *journal.Record) {
	goals := map[evictionapi.Signal]int64{}
	for i := range r.Thresholds {
		standing := &r.Thresholds[i]
		if !c.wanted(standing.Signal) {
			continue
		}
		s := c.signal(standing.Signal)
		s.Met, s.Near = true, true
		t, err := standing.Threshold(c.policy)
		o, observed := r.Observations[standing.Signal]
		if err != nil || !observed || t.MinReclaim == nil {
			continue
		}
		// With this much, every one of the signal's thresholds is resolved.
		goals[standing.Signal] = max(goals[standing.Signal], threshold.Goal(t, o.Capacity).Value())
	}
	for name, s := range c.signals {
		goal, pending := goals[name]
		if pending {
			s.Goal.set(r.Time, goal, 0, c.epoch)
		} else if s.Goal.epoch >= 0 {
			s.Goal.add(Point{r.Time, s.Goal.Last}, false) // up to here
			s.Goal.epoch = -1
		}
	}
}

// conditions follows those that the node has.
func (c *Collector) conditions(r *journal.Record) {
	for _, condition := range r.Conditions {
		if _, stands := c.standing[condition]; !stands {
			c.standing[condition] = r.Time
		}
	}
	for condition, since := range c.standing {
		if !slices.Contains(r.Conditions, condition) {
			c.held(condition, since, r.Time)
			delete(c.standing, condition)
		}
	}
}

func (c *Collector) held(condition v1.NodeConditionType, from, to time.Time) {
	if !c.overlaps(from, to) {
		return
	}
	spans, found := c.t.Conditions[condition]
	if !found {
		spans = &Spans{}
		c.t.Conditions[condition] = spans
	}
	spans.add(Span{From: from, To: to, What: string(condition)})
}

// Timeline returns what was collected; nothing may be added afterwards. It is nil if
// no record lies in the window.
func (c *Collector) Timeline() *Timeline {
	if c.t.Records == 0 {
		return nil
	}
	t := &c.t
	t.From, t.To = t.First, t.Last
	if c.window.From.After(t.From) {
		t.From = c.window.From
	}
	if !c.window.To.IsZero() && c.window.To.Before(t.To) {
		t.To = c.window.To
	}
	for _, condition := range slices.Sorted(maps.Keys(c.standing)) {
		c.held(condition, c.standing[condition], t.Last)
	}
	for _, name := range observe.Signals() {
		s, found := c.signals[name]
		limited := found && !(s.Limits[Hard].Empty() && s.Limits[Soft].Empty())
		if found && !s.Available.Empty() && (limited || s.Near || len(c.only) > 0) {
			t.Signals = append(t.Signals, s)
		}
	}
	return t
}

// Span returns the times of the journal's records.
func (c *Collector) Span() (first, last time.Time) { return c.t.First, c.t.Last }
