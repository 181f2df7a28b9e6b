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
	"fmt"
	"slices"
)

// This file places the marks of lanes so that no label lies on another.

// mostRows of a lane; what finds no place in them is put together in one more.
const mostRows = 24

// stack gives each mark a row, in which its bar and its label take room. Marks must be
// in the order of their bars.
func (c *canvas) stack(marks []bar) (placed, crowds []bar, rows int) {
	var ends []float64
	crowded := 0
	for _, m := range marks {
		from, to := float64(m.X), float64(m.X+m.W)
		if m.Diamond {
			from -= float64(m.W)
		}
		if m.TailW > 0 {
			to = float64(m.TailX + m.TailW)
		}
		from, to = m.label(from, to)
		row := slices.IndexFunc(ends, func(end float64) bool { return end+8 <= from })
		if row < 0 && len(ends) < mostRows {
			ends = append(ends, 0)
			row = len(ends) - 1
		}
		if row < 0 {
			crowded++
			crowds = joinCrowd(crowds, m)
			continue
		}
		ends[row] = to
		m.move(c.y + rowHeight*float64(row))
		placed = append(placed, m)
	}
	rows = len(ends)
	if crowded > 0 {
		for i := range crowds {
			crowds[i].move(c.y + rowHeight*float64(rows))
			crowds[i].TextX, crowds[i].Anchor = crowds[i].X+crowds[i].W+4, "start"
		}
		rows++
	}
	return placed, crowds, rows
}

// label places the text of a mark from one place to another: to the right of it, or to
// the left where the drawing ends, or above a long one that has no room on either
// side. A text that is too long is cut. It returns from where to where both are.
func (b *bar) label(from, to float64) (labelled, end float64) {
	const beside, edge, long = 5, width - 4, 200
	rightRoom, leftRoom := edge-to-beside, from-beside-left
	b.Above = textWidth(b.Text) > max(rightRoom, leftRoom) && to-from > long
	if b.Above {
		start := max(left, min(from, edge-textWidth(b.Text)))
		b.Text = short(b.Text, int((edge-start)/charWidth))
		b.TextX, b.Anchor = px(start), "start"
		return min(from, start), max(to, start+textWidth(b.Text))
	}
	b.Text = short(b.Text, int(max(rightRoom, leftRoom)/charWidth))
	if textWidth(b.Text) <= rightRoom {
		b.TextX, b.Anchor = px(to+beside), "start"
		return from, to + beside + textWidth(b.Text)
	}
	b.TextX, b.Anchor = px(from-beside), "end"
	return from - beside - textWidth(b.Text), to
}

// crowdRoom is how far apart the marks of a crowd are at the least, for their number.
const crowdRoom = 44

// joinCrowd adds a mark to the last of the crowds, or begins another.
func joinCrowd(crowds []bar, m bar) []bar {
	if n := len(crowds); n > 0 && m.X-crowds[n-1].X < crowdRoom {
		last := &crowds[n-1]
		var more int
		if _, err := fmt.Sscanf(last.Text, "+%d", &more); err == nil {
			last.Text = fmt.Sprintf("+%d", more+1)
			if more < 40 {
				last.Title += "\n" + m.Title
			}
		}
		return crowds
	}
	m.Text, m.TailW, m.Cuts, m.Diamond, m.Above, m.W = "+1", 0, nil, false, false, 8
	return append(crowds, m)
}

func (b *bar) move(to float64) {
	b.Y, b.H, b.TextY = px(to), rowHeight-6, px(to+10)
	if b.Above {
		b.Y, b.H, to = px(to+12), 4, to+8
	}
	for i := range b.Cuts {
		x, y := float64(b.Cuts[i].X), to+6
		b.Cuts[i].Path = fmt.Sprintf("M%s %sl8 8m0 -8l-8 8", px(x-4), px(y-4))
	}
}

// DiamondPath draws a release.
func (b bar) DiamondPath() string {
	return fmt.Sprintf("M%s %sl6 6l-6 6l-6 -6z", b.X, b.Y)
}

func (c *canvas) lane(name string, marks []bar) {
	if len(marks) == 0 {
		return
	}
	c.y += 10
	slices.SortStableFunc(marks, func(a, b bar) int { return cmp.Compare(a.X, b.X) })
	placed, crowds, rows := c.stack(marks)
	l := lane{Y: px(c.y), H: px(rowHeight * float64(rows)), Label: name, Marks: placed, Crowds: crowds}
	c.d.Lanes = append(c.d.Lanes, l)
	c.y += rowHeight * float64(rows)
}

// nameRoom is how much of a pod's name a label has.
const nameRoom = 48

func (c *canvas) kills() []bar {
	var marks []bar
	for _, k := range c.t.Kills.Kept() {
		end := cmp.Or(k.Killed, k.End())
		open := end.IsZero()
		if open {
			end = c.t.To
		}
		x, w := c.bar(k.Decided, end)
		m := bar{X: px(x), W: px(w), Class: "kill", ID: c.ids[k], Open: open}
		if last := k.End(); !k.Killed.IsZero() && (last.IsZero() || last.After(k.Killed)) {
			if m.Open = last.IsZero(); m.Open {
				last = c.t.To
			}
			m.TailX = px(x + w)
			m.TailW = px(max(1, c.x(last)-x-w))
		}
		for _, f := range k.Failures {
			m.Cuts = append(m.Cuts, cut{X: px(c.x(f.At)), Class: "failed"})
		}
		if !k.Slow.IsZero() {
			m.Cuts = append(m.Cuts, cut{X: px(c.x(k.Slow)), Class: "slow"})
		}
		m.Text = fmt.Sprintf("#%d %s", k.Number, short(k.Pod.String(), nameRoom))
		for _, part := range k.course() {
			m.Text += " · " + part
		}
		if n := len(k.Failures); n > 0 {
			m.Text += fmt.Sprintf(" · failed %d×", n)
		}
		m.Title = "kill " + k.describe() + "\n" + instant(k.Decided)
		marks = append(marks, m)
	}
	return append(marks, c.crowdMarks("kill", c.t.Kills.Crowds())...)
}

// crowdMarks stand for the events that are counted only.
func (c *canvas) crowdMarks(class string, crowds []Crowd) []bar {
	var marks []bar
	for _, crowd := range crowds {
		x, w := c.bar(crowd.At, crowd.At)
		text := fmt.Sprintf("and %s more", thousands(int64(crowd.N)))
		marks = append(marks, bar{X: px(x), W: px(w), Class: class, Text: text, Title: fmt.Sprintf("%s about %s", text, instant(crowd.At))})
	}
	return marks
}

func (c *canvas) reclaims() []bar {
	var marks []bar
	for _, r := range c.t.Reclaims.Kept() {
		end, open := r.To, r.To.IsZero()
		if open {
			end = r.From
		}
		x, w := c.bar(r.From, end)
		u := unitOf(r.Signal)
		text := r.Filesystem
		for _, step := range r.Steps {
			text += " · " + step
		}
		switch {
		case r.Freed != nil:
			text += fmt.Sprintf(" · %s of %s freed", u.bare(*r.Freed), u.amount(r.Wanted))
		case !open:
			text += fmt.Sprintf(" · %s wanted, freed is unknown", u.amount(r.Wanted))
		default:
			text += fmt.Sprintf(" · %s wanted, no outcome", u.amount(r.Wanted))
		}
		marks = append(marks, bar{
			X: px(x), W: px(w), Class: "reclaim", ID: c.ids[r], Text: text, Title: "reclaim " + r.describe() + "\n" + instant(r.From),
		})
	}
	return append(marks, c.crowdMarks("reclaim", c.t.Reclaims.Crowds())...)
}

func (c *canvas) releases() []bar {
	var marks []bar
	for _, r := range c.t.Releases.Kept() {
		m := bar{X: px(c.x(r.At)), W: 6, Class: "release", Diamond: true, ID: c.ids[r]}
		m.Text = short(r.Pod.String(), nameRoom) + " · " + r.brief()
		if r.Number > 0 {
			m.Text = fmt.Sprintf("#%d %s", r.Number, m.Text)
		}
		m.Title = "release " + r.describe() + "\n" + instant(r.At)
		marks = append(marks, m)
	}
	return append(marks, c.crowdMarks("release", c.t.Releases.Crowds())...)
}

// noteRoom is how close together changes of the node are one mark: most say what is
// drawn elsewhere too.
const noteRoom = 24

func (c *canvas) notes() []bar {
	var marks []bar
	counts := []int{}
	for _, note := range c.t.Notes.Kept() {
		x := px(c.x(note.At))
		title := instant(note.At) + ": " + note.What
		if n := len(marks); n > 0 && x-marks[n-1].X < noteRoom {
			counts[n-1]++
			marks[n-1].Text = fmt.Sprintf("%d changes", counts[n-1])
			if counts[n-1] < 40 {
				marks[n-1].Title += "\n" + title
			}
			continue
		}
		counts = append(counts, 1)
		marks = append(marks, bar{X: x, W: 7, Class: "note", ID: c.ids[note], Text: short(note.What, nameRoom), Title: title})
	}
	return append(marks, c.crowdMarks("note", c.t.Notes.Crowds())...)
}
