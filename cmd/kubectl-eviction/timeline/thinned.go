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
	"slices"
	"time"
)

// mostBuckets is how many buckets a journal is divided into, however long it is:
// two for each pixel of a drawing's width.
const mostBuckets = 2048

// finest is how much time a bucket holds at the least: records carry nanoseconds, but
// no reader looks closer than a millisecond.
const finest = time.Millisecond

// joiner is what fills a bucket. The zero value is an empty one.
type joiner[T any] interface {
	// join adds what came later.
	join(later T) T
}

// thinned divides time into at most mostBuckets equal buckets, which grow with the
// time that they cover: memory does not depend on the length of a journal.
type thinned[T joiner[T]] struct {
	origin  time.Time
	width   time.Duration
	buckets []T
}

// at returns the bucket of a time. The pointer is good until the next call.
func (s *thinned[T]) at(t time.Time) *T {
	if s.width == 0 {
		s.origin, s.width = t, finest
	}
	if t.Before(s.origin) {
		s.extend(s.origin.Sub(t))
	}
	past := max(0, t.Sub(s.origin))
	for past/s.width >= mostBuckets {
		s.coarsen()
	}
	i := int(past / s.width)
	for len(s.buckets) <= i {
		var empty T
		s.buckets = append(s.buckets, empty)
	}
	return &s.buckets[i]
}

// extend makes room before the origin: the clock may have been set back.
func (s *thinned[T]) extend(by time.Duration) {
	missing := func() time.Duration { return (by-1)/s.width + 1 }
	for missing()+time.Duration(len(s.buckets)) > mostBuckets {
		s.coarsen()
	}
	before := make([]T, missing(), mostBuckets)
	s.origin = s.origin.Add(-missing() * s.width)
	s.buckets = append(before, s.buckets...)
}

// coarsen joins each two buckets.
func (s *thinned[T]) coarsen() {
	for i := 0; i < len(s.buckets); i += 2 {
		b := s.buckets[i]
		if i+1 < len(s.buckets) {
			b = b.join(s.buckets[i+1])
		}
		s.buckets[i/2] = b
	}
	s.buckets = s.buckets[:(len(s.buckets)+1)/2]
	s.width *= 2
}

// Point is an amount at a time.
type Point struct {
	At    time.Time
	Value int64
}

// Extent is what is kept of the points of a bucket: none is lower than the lowest
// of it or higher than the highest.
type Extent struct {
	N                        int
	First, Last, Least, Most Point
	// Broken: nothing is known of the time between the bucket before and First.
	Broken bool
}

func extentOf(p Point, broken bool) Extent {
	return Extent{N: 1, First: p, Last: p, Least: p, Most: p, Broken: broken}
}

func (e Extent) join(later Extent) Extent {
	switch {
	case later.N == 0:
		return e
	case e.N == 0:
		return later
	}
	e.N += later.N
	e.Last = later.Last
	if later.Least.Value < e.Least.Value {
		e.Least = later.Least
	}
	if later.Most.Value > e.Most.Value {
		e.Most = later.Most
	}
	return e
}

// points returns the points of an extent in the order of time, each once.
func (e Extent) points() []Point {
	points := []Point{e.First, e.Least, e.Most, e.Last}
	slices.SortStableFunc(points[1:3], func(a, b Point) int { return a.At.Compare(b.At) })
	return slices.Compact(points)
}

// Series is an amount over time.
type Series struct{ thinned[Extent] }

// add takes the next point; it is broken when nothing is known of the time since
// the one before.
func (s *Series) add(p Point, broken bool) {
	b := s.at(p.At)
	*b = b.join(extentOf(p, broken))
}

// Empty says whether there is no point.
func (s *Series) Empty() bool { return len(s.buckets) == 0 }

// Extents returns what is kept, in the order of time.
func (s *Series) Extents() []Extent {
	var kept []Extent
	for _, e := range s.buckets {
		if e.N > 0 {
			kept = append(kept, e)
		}
	}
	return kept
}

// Whole returns the extent of all points.
func (s *Series) Whole() Extent {
	var whole Extent
	for _, e := range s.buckets {
		whole = whole.join(e)
	}
	return whole
}

// shownOfBucket is how many events of a bucket are kept with their details; the
// others are counted.
const shownOfBucket = 32

// cell holds the events of a bucket.
type cell[E any] struct {
	kept []E
	more int
	last time.Time
}

func (c cell[E]) join(later cell[E]) cell[E] {
	room := min(len(later.kept), shownOfBucket-len(c.kept))
	c.kept = append(c.kept, later.kept[:room]...)
	c.more += later.more + len(later.kept) - room
	if later.last.After(c.last) {
		c.last = later.last
	}
	return c
}

// Lane holds the events of a kind.
type Lane[E any] struct {
	thinned[cell[E]]
}

func (l *Lane[E]) add(at time.Time, event E) {
	b := l.at(at)
	*b = b.join(cell[E]{kept: []E{event}, last: at})
}

// Kept returns the events that are kept with their details.
func (l *Lane[E]) Kept() []E {
	var kept []E
	for _, c := range l.buckets {
		kept = append(kept, c.kept...)
	}
	return kept
}

// Crowd is a number of events that are not kept one by one.
type Crowd struct {
	At time.Time
	N  int
}

// Crowds returns where more events were than are kept.
func (l *Lane[E]) Crowds() []Crowd {
	var crowds []Crowd
	for _, c := range l.buckets {
		if c.more > 0 {
			crowds = append(crowds, Crowd{c.last, c.more})
		}
	}
	return crowds
}

// Count returns the number of all events.
func (l *Lane[E]) Count() int {
	n := 0
	for _, c := range l.buckets {
		n += len(c.kept) + c.more
	}
	return n
}

// Span is a time in which something was so; N of them where several that follow
// each other closely are drawn as one.
type Span struct {
	From, To time.Time
	What     string
	N        int
}

// mostSpans is how many spans are kept apart: one for each four pixels or so.
const mostSpans = 256

// Spans are times in which something was so.
type Spans struct{ all []Span }

func (s *Spans) add(span Span) {
	span.N = 1
	s.all = append(s.all, span)
	if len(s.all) < 2*mostSpans {
		return
	}
	s.all = joinClosest(s.all)
}

// joinClosest leaves mostSpans of the spans: those with the least time between them
// become one.
func joinClosest(spans []Span) []Span {
	slices.SortStableFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) })
	between := make([]time.Duration, 0, len(spans))
	for i := 1; i < len(spans); i++ {
		between = append(between, spans[i].From.Sub(spans[i-1].To))
	}
	sorted := slices.Clone(between)
	slices.Sort(sorted)
	joins := len(spans) - mostSpans
	limit := sorted[joins-1]
	joined := []Span{spans[0]}
	for i, next := range spans[1:] {
		last := &joined[len(joined)-1]
		if between[i] > limit || joins == 0 {
			joined = append(joined, next)
			continue
		}
		joins--
		last.To = slices.MaxFunc([]time.Time{last.To, next.To}, time.Time.Compare)
		last.N += next.N
	}
	return joined
}
