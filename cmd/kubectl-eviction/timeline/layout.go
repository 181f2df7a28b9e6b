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
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// px is a length in the drawing, written to a tenth.
type px float64

func (p px) String() string {
	text := strconv.FormatFloat(float64(p), 'f', 1, 64)
	return strings.TrimSuffix(text, ".0")
}

// Plus and Minus are for the templates.
func (p px) Plus(by px) px { return p + by }

// Minus returns the difference.
func (p px) Minus(other px) px { return p - other }

// Lengths of the drawing.
const (
	width = 1200
	left  = 150
	right = 150
	plot  = width - left - right

	rowHeight   = 18
	wakeHeight  = 13
	gapBetween  = 26
	nearHeight  = 150
	quietHeight = 56

	// charWidth is about what a letter of the labels takes: the font is the reader's.
	charWidth = 6.7
)

// drawing is a timeline with a place for everything.
type drawing struct {
	Style                        any
	Width, Height                px
	Left, Right, Top, Bottom     px
	Title, Subtitle, Description string
	Remarks                      []label
	Legend                       []key
	Ticks                        []tick
	Bands                        []band
	Conditions                   []strip
	Panels                       []panel
	Lanes                        []lane
	Wakes                        []strip
	WakesY                       px
	Events                       []event
	// Links: marks link to the rows of the table.
	Links bool
}

type label struct {
	X, Y        px
	Class, Text string
}

// key is an entry of the legend.
type key struct {
	X, Y        px
	Class, Text string
	// Shape is line, box or diamond.
	Shape string
}

type tick struct {
	X           px
	Label, Date string
}

// band is a time of which nothing is known.
type band struct {
	X, W, Mid   px
	Title, Text string
	ID          int
}

// strip is a row of bars: a node condition, or the wake-ups by a reason.
type strip struct {
	Y, H, TextY px
	Label       string
	Bars        []bar
}

// bar is a mark with a length.
type bar struct {
	X, Y, W, H  px
	Class       string
	Title, Text string
	// Above: the mark is a thin line below its text.
	TextX, TextY px
	Anchor       string
	Above        bool
	// ID of the event, 0 for none.
	ID int
	// Tail is the part from the kill to the clean-up, Cuts the troubles in between.
	TailX, TailW px
	Open         bool
	Cuts         []cut
	Diamond      bool
}

// Aria is what a screen reader says of a mark.
func (b bar) Aria() string { return strings.ReplaceAll(b.Title, "\n", "; ") }

// Aria is what a screen reader says of a gap.
func (b band) Aria() string { return strings.ReplaceAll(b.Title, "\n", "; ") }

type cut struct {
	X           px
	Class, Path string
}

type lane struct {
	Y, H   px
	Label  string
	Marks  []bar
	Crowds []bar
}

type curve struct{ Class, Path string }

type panel struct {
	ID                  int
	X, Y, W, H, HeaderY px
	Name, Header        string
	Axis                []label
	Curves              []curve
	Limits              []label
	LimitX              px
	Hovers              []bar
	Flags               []flag
}

// flag is a line through a panel where pods were killed for its signal.
type flag struct {
	X     px
	Text  string
	Title string
	ID    int
}

// canvas is what places things: the timeline, the axis and how far down the
// drawing has come.
type canvas struct {
	t    *Timeline
	d    *drawing
	ids  map[any]int
	from time.Time
	span float64
	y    float64
}

// leastSpan is the least time that a drawing covers; a single record has no length.
const leastSpan = time.Second

// layout places everything.
func (t *Timeline) layout() *drawing {
	from, to := t.From, t.To
	if to.Sub(from) < leastSpan {
		middle := from.Add(to.Sub(from) / 2)
		from, to = middle.Add(-leastSpan/2), middle.Add(leastSpan/2)
	} else {
		// What happens first or last is not to lie on the edge.
		edge := to.Sub(from) / 100
		from, to = from.Add(-edge), to.Add(edge)
	}
	c := &canvas{t: t, d: &drawing{Width: width, Left: left, Right: width - right}, ids: map[any]int{}, from: from, span: to.Sub(from).Seconds()}
	d := c.d
	d.Events = t.events()
	for _, e := range d.Events {
		if e.of != nil {
			c.ids[e.of] = e.ID
		}
	}
	c.head()
	d.Top = px(c.y)
	c.y += 4
	for _, at := range timeTicks(from, to) {
		d.Ticks = append(d.Ticks, tick{px(c.x(at.At)), at.Label, at.Date})
	}
	// What ran short first.
	for _, near := range []bool{true, false} {
		for _, s := range t.Signals {
			if s.Near == near {
				c.panel(s)
			}
		}
	}
	c.y += 10
	c.conditions()
	c.lane("Reclaim", c.reclaims())
	c.lane("Kills", c.kills())
	c.lane("Releases", c.releases())
	c.lane("Node", c.notes())
	c.wakes()
	d.Bottom = px(c.y)
	for i := range t.Gaps.all {
		d.Bands = append(d.Bands, c.band(&t.Gaps.all[i]))
	}
	d.Height = px(c.y + 44)
	d.mark()
	return d
}

// band draws a gap.
func (c *canvas) band(gap *Span) band {
	x, w := c.bar(gap.From, gap.To)
	b := band{X: px(x), W: px(w), Mid: px(x + w/2), Title: gap.title(), ID: c.ids[gap]}
	if textWidth(gap.What) < w-8 {
		b.Text = gap.What
	}
	return b
}

func (s *Span) title() string {
	return fmt.Sprintf("%s\n%s to %s", s.describe(), instant(s.From), instant(s.To))
}

// mark notes which events have a mark.
func (d *drawing) mark() {
	marked := func(id int) {
		if id > 0 {
			d.Events[id-1].Marked = true
		}
	}
	for _, l := range d.Lanes {
		for _, m := range l.Marks {
			marked(m.ID)
		}
	}
	for _, s := range d.Conditions {
		for _, b := range s.Bars {
			marked(b.ID)
		}
	}
	for _, b := range d.Bands {
		marked(b.ID)
	}
}

// x places a time, within the plot.
func (c *canvas) x(t time.Time) float64 {
	return left + plot*min(1, max(0, t.Sub(c.from).Seconds()/c.span))
}

// leastBar is the width of a mark that has hardly any length.
const leastBar = 3

func (c *canvas) bar(from, to time.Time) (x, w float64) {
	x = c.x(from)
	return x, max(leastBar, c.x(to)-x)
}

func textWidth(text string) float64 { return charWidth * float64(utf8.RuneCountInString(text)) }

// short cuts a text in the middle: the ends of pods' names tell them apart.
func short(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	head := most * 2 / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(most-head-1):])
}

func (c *canvas) head() {
	t, d := c.t, c.d
	d.Title = "Evictions"
	if t.Node != "" {
		d.Title = "Evictions on node " + t.Node
	}
	d.Subtitle = fmt.Sprintf("%s to %s, %s", instant(t.From), instant(t.To), ago(t.To.Sub(t.From)))
	if t.Kubelet != "" {
		d.Subtitle += "; kubelet " + t.Kubelet
	}
	var counts []string
	for _, count := range []struct {
		n         int
		one, many string
		also      bool
	}{
		{t.Records, "record", "records", true}, {t.Passes, "pass", "passes", true}, {t.Kills.Count(), "kill", "kills", true},
		{t.Reclaims.Count(), "reclaim", "reclaims", true}, {t.Releases.Count(), "release", "releases", false},
		{len(t.Gaps.all), "gap", "gaps", false}, {int(min(t.Dropped, 1<<40)), "record dropped", "records dropped", false},
	} {
		what := count.many
		if count.n == 1 {
			what = count.one
		}
		if count.n > 0 || count.also {
			counts = append(counts, thousands(int64(count.n))+" "+what)
		}
	}
	d.Description = strings.Join(counts, ", ")
	c.y = 66
	if len(t.Signals) == 0 {
		c.y += 18
		d.Remarks = append(d.Remarks, label{X: left, Y: px(c.y), Text: "No signal has a threshold or was near one."})
	}
	c.y += 24
	x := float64(left)
	for _, k := range c.legend() {
		w := 34 + textWidth(k.Text)
		if x+w > width-20 {
			x, c.y = left, c.y+18
		}
		k.X, k.Y = px(x), px(c.y)
		d.Legend = append(d.Legend, k)
		x += w
	}
	c.y += 38
}

// legend lists what the drawing has, and nothing else.
func (c *canvas) legend() []key {
	t := c.t
	limited := func(of func(*Signal) *Limit) bool {
		return slices.ContainsFunc(t.Signals, func(s *Signal) bool { return !of(s).Empty() })
	}
	var keys []key
	for _, k := range []struct {
		shown              bool
		class, shape, text string
	}{
		{len(t.Signals) > 0, "available", "line", "available"},
		{limited(func(s *Signal) *Limit { return &s.Limits[Hard] }), "hard", "line", "hard threshold"},
		{limited(func(s *Signal) *Limit { return &s.Limits[Soft] }), "soft", "line", "soft threshold"},
		{limited(func(s *Signal) *Limit { return &s.Goal }), "goal", "line", "goal of the minimum reclaim"},
		{len(t.Conditions) > 0, "condition", "box", "node condition"},
		{t.Reclaims.Count() > 0, "reclaim", "box", "reclaim"},
		{t.Kills.Count() > 0, "kill", "box", "from decision to kill"},
		{t.Kills.Count() > 0, "tail", "box", "to clean-up"},
		{t.Releases.Count() > 0, "release", "diamond", "release measured"},
		{len(t.Gaps.all) > 0, "gap", "box", "no records"},
		{t.Passes > 0, "wake", "tick", "pass"},
		{t.Acted > 0, "decided", "tick", "pass that acted"},
	} {
		if k.shown {
			keys = append(keys, key{Class: k.class, Shape: k.shape, Text: k.text})
		}
	}
	return keys
}

func (c *canvas) conditions() {
	for _, condition := range slices.Sorted(maps.Keys(c.t.Conditions)) {
		s := strip{Y: px(c.y), H: rowHeight - 6, TextY: px(c.y + 10), Label: string(condition)}
		spans := c.t.Conditions[condition].all
		for i := range spans {
			x, w := c.bar(spans[i].From, spans[i].To)
			s.Bars = append(s.Bars, bar{
				X: px(x), Y: px(c.y), W: px(w), H: rowHeight - 6, Class: "condition", ID: c.ids[&spans[i]], Title: spans[i].title(),
			})
		}
		c.d.Conditions = append(c.d.Conditions, s)
		c.y += rowHeight
	}
}

// wakeColumn is the width of a tick of passes with the room after it.
const wakeColumn = 2.0

func (c *canvas) wakes() {
	c.y += 8
	c.d.WakesY = px(c.y)
	for row, reason := range reasons {
		s := strip{Y: px(c.y), H: wakeHeight - 3, TextY: px(c.y + 9), Label: "woken by " + reason}
		if reason == "other" {
			s.Label = "woken otherwise"
		}
		var column Ticks
		at := -1
		flush := func() {
			if n := column[row]; n.Passes > 0 {
				s.Bars = append(s.Bars, c.tick(n, reason, left+wakeColumn*float64(at)))
			}
			column = Ticks{}
		}
		for _, ticks := range c.t.Wakes.buckets {
			if ticks[row].Passes == 0 {
				continue
			}
			if now := int((c.x(ticks[row].At) - left) / wakeColumn); now != at {
				flush()
				at = now
			}
			column = column.join(ticks)
		}
		flush()
		if len(s.Bars) == 0 {
			continue
		}
		c.d.Wakes = append(c.d.Wakes, s)
		c.y += wakeHeight
	}
}

func (c *canvas) tick(n Tick, reason string, x float64) bar {
	b := bar{X: px(x), Y: px(c.y), W: wakeColumn - 0.5, H: wakeHeight - 3, Class: "wake"}
	if n.Decided > 0 {
		b.Class = "decided"
	}
	what := "a pass"
	if n.Passes > 1 {
		what = thousands(int64(n.Passes)) + " passes, the first"
	}
	b.Title = fmt.Sprintf("%s woken by %s at %s, at most %s after the wake-up", what, reason, instant(n.At), ago(n.Slowest))
	switch {
	case n.Decided > 0 && n.Passes == 1:
		b.Title += "; it acted"
	case n.Decided > 0:
		b.Title += fmt.Sprintf("; %d acted", n.Decided)
	}
	return b
}
