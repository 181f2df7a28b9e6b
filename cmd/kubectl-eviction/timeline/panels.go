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
	"fmt"
	"math"
	"slices"
	"strings"
)

// hoverColumn is the width of the columns of a panel that have a tooltip each.
const hoverColumn = 6.0

// panel draws what was available of a signal against its thresholds.
func (c *canvas) panel(s *Signal) {
	c.y += gapBetween
	height := float64(quietHeight)
	if s.Near {
		height = nearHeight
	}
	u := unitOf(s.Name)
	whole := s.Available.Whole()
	most, highest := whole.Most.Value, int64(0)
	if s.Capacity > 0 {
		most = min(most, s.Capacity) // what is more cannot be true
	}
	for _, l := range []*Limit{&s.Limits[Hard], &s.Limits[Soft], &s.Goal} {
		if !l.Empty() {
			highest = max(highest, l.Whole().Most.Value)
		}
	}
	most = max(most, highest+highest/4, 1)
	sc := newScale(c.y+height, height-6, most, highest)
	p := panel{
		ID: len(c.d.Panels) + 1, X: left, Y: px(c.y), W: plot, H: px(height), HeaderY: px(c.y - 7), LimitX: left + plot + 6,
		Name: string(s.Name),
	}
	p.Header = fmt.Sprintf("least %s at %s", u.amount(whole.Least.Value), whole.Least.At.UTC().Format("15:04:05.000"))
	if sc.bend > 0 {
		p.Header += "; the scale is compressed above the threshold"
	}
	if s.Unknown > 0 {
		p.Header += fmt.Sprintf("; unknown in %s passes", thousands(int64(s.Unknown)))
	}
	for _, tick := range sc.ticks(u) {
		p.Axis = append(p.Axis, label{X: left - 6, Y: px(tick.Y), Text: tick.Label})
	}
	extents := s.Available.Extents()
	p.Curves = append(p.Curves, curve{"available", c.path(extents, sc)})
	if whole.N <= mostDots {
		p.Curves = append(p.Curves, curve{"dots", c.dots(extents, sc)})
	}
	for _, l := range []struct {
		limit       *Limit
		class, name string
	}{{&s.Limits[Hard], "hard", "hard"}, {&s.Limits[Soft], "soft", "soft"}, {&s.Goal, "goal", "goal"}} {
		if l.limit.Empty() {
			continue
		}
		p.Curves = append(p.Curves, curve{l.class, c.path(l.limit.Extents(), sc)})
		text := l.name + " " + u.bare(l.limit.Last)
		if l.limit.Grace > 0 {
			text += " for " + ago(l.limit.Grace)
		}
		p.Limits = append(p.Limits, label{X: left + plot + 6, Y: px(sc.y(l.limit.Last) + 4), Class: l.class, Text: text})
	}
	spread(p.Limits, c.y+height)
	p.Hovers = c.hovers(s, u, height)
	p.Flags = c.flags(s)
	c.d.Panels = append(c.d.Panels, p)
	c.y += height
}

// spread moves labels apart that lie on each other, upwards from the bottom.
func spread(labels []label, bottom float64) {
	slices.SortFunc(labels, func(a, b label) int { return int(b.Y - a.Y) })
	below := px(bottom + 4 + leastLine)
	for i := range labels {
		labels[i].Y = min(labels[i].Y, below-leastLine)
		below = labels[i].Y
	}
}

// leastLine is the height of a line of labels.
const leastLine = 14

// path draws a line through what is kept, thinned to the lowest and the highest of
// each pixel, and broken where nothing is known. A point between two gaps is a dot.
func (c *canvas) path(extents []Extent, s scale) string {
	var b strings.Builder
	var column Extent
	at, alone := -1, false
	lastX, lastY := px(0), px(0)
	flush := func() {
		for i, p := range column.points() {
			x, y := px(c.x(p.At)), px(s.y(p.Value))
			switch {
			case b.Len() == 0 || i == 0 && column.Broken:
				if alone {
					b.WriteString("h0")
				}
				fmt.Fprintf(&b, "M%s %s", x, y)
				alone = true
			case x != lastX || y != lastY:
				fmt.Fprintf(&b, "L%s %s", x, y)
				alone = false
			}
			lastX, lastY = x, y
		}
	}
	for _, e := range extents {
		now := int(c.x(e.First.At))
		if at >= 0 && (now != at || e.Broken) {
			flush()
			column = Extent{}
		}
		at = now
		column = column.join(e)
	}
	if column.N > 0 {
		flush()
	}
	if alone {
		b.WriteString("h0")
	}
	return b.String()
}

// mostDots is how many points are drawn as such: a reader sees between which passes
// the line is only a line.
const mostDots = 150

func (c *canvas) dots(extents []Extent, s scale) string {
	const apart = 5
	var b strings.Builder
	lastX, lastY := -1.0, -1.0
	for _, e := range extents {
		for _, p := range e.points() {
			x, y := c.x(p.At), s.y(p.Value)
			if math.Hypot(x-lastX, y-lastY) < apart {
				continue
			}
			lastX, lastY = x, y
			fmt.Fprintf(&b, "M%s %sh0", px(x), px(y))
		}
	}
	return b.String()
}

// hovers are columns that say what was seen in them.
func (c *canvas) hovers(s *Signal, u unit, height float64) []bar {
	var hovers []bar
	var column Extent
	at := -1
	flush := func() {
		if column.N == 0 {
			return
		}
		title := fmt.Sprintf("%s of %s available at %s", u.amount(column.First.Value), s.Name, instant(column.First.At))
		if column.N > 1 {
			title = fmt.Sprintf("%s to %s of %s available\n%s to %s", u.bare(column.Least.Value), u.amount(column.Most.Value), s.Name, instant(column.First.At), instant(column.Last.At))
		}
		hovers = append(hovers, bar{X: px(left + hoverColumn*float64(at)), Y: px(c.y), W: hoverColumn, H: px(height), Title: title})
		column = Extent{}
	}
	for _, e := range s.Available.Extents() {
		if now := int((c.x(e.First.At) - left) / hoverColumn); now != at {
			flush()
			at = now
		}
		column = column.join(e)
	}
	flush()
	return hovers
}

// flagRoom is how close together kills share a flag.
const flagRoom = 64

// flags mark the kills for a signal in its panel.
func (c *canvas) flags(s *Signal) []flag {
	var flags []flag
	first, n := 0, 0
	for _, k := range c.t.Kills.Kept() {
		if k.Cause != string(s.Name) {
			continue
		}
		x := px(c.x(k.Decided))
		if len(flags) > 0 && x-flags[len(flags)-1].X < flagRoom {
			f := &flags[len(flags)-1]
			n++
			f.Text = fmt.Sprintf("#%d–%d", first, k.Number)
			if n != k.Number-first+1 {
				f.Text = fmt.Sprintf("%d kills", n)
			}
			if n < 40 {
				f.Title += "\nkill " + k.describe()
			}
			continue
		}
		first, n = k.Number, 1
		flags = append(flags, flag{X: x, Text: fmt.Sprintf("#%d", k.Number), Title: "kill " + k.describe(), ID: c.ids[k]})
	}
	return flags
}
