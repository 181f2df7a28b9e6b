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
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// tickSteps are the distances of ticks that people count in.
var tickSteps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 364 * day, 3640 * day, 36400 * day,
}

const day = 24 * time.Hour

// mostTicks fit beside each other with their labels.
const mostTicks = 10

// timeTick is a time on the axis; Date is set on the first and where the day changes.
type timeTick struct {
	At          time.Time
	Label, Date string
}

// timeTicks returns ticks between two times, both included.
func timeTicks(from, to time.Time) []timeTick {
	step := tickSteps[len(tickSteps)-1]
	for _, s := range tickSteps {
		if to.Sub(from)/s < mostTicks {
			step = s
			break
		}
	}
	layout := "15:04"
	switch {
	case step < time.Second:
		layout = "15:04:05.000"
	case step < time.Minute:
		layout = "15:04:05"
	case step >= day:
		layout = ""
	}
	var ticks []timeTick
	shown := ""
	for at := from.UTC().Truncate(step); !at.After(to) && len(ticks) <= mostTicks+1; at = at.Add(step) {
		if at.Before(from) {
			continue
		}
		tick := timeTick{At: at, Label: at.Format("2006-01-02")}
		if layout != "" {
			date := tick.Label
			tick.Label = at.Format(layout)
			if date != shown {
				tick.Date, shown = date, date
			}
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// instant writes a time as tooltips and tables have it.
func instant(t time.Time) string {
	return t.UTC().Format("2006-01-02 15:04:05.000") + " UTC"
}

// ago writes a duration for people, to three digits or so.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + ago(-max(d, -math.MaxInt64))
	case d < time.Millisecond:
		return "0 s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(math.Round(d.Seconds()*100)/100, 'f', -1, 64) + " s"
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second), " 0 s")
	case d < 2*day:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute), " 0 min")
	}
	return fmt.Sprintf("%d days", d/day)
}

// unit is what amounts of a signal are counted in.
type unit struct {
	binary bool
	name   string
}

func unitOf(signal evictionapi.Signal) unit {
	traits, _ := observe.TraitsOf(signal)
	switch {
	case traits.Format == resource.BinarySI:
		return unit{binary: true}
	case traits.Resource == observe.ResourceInodes:
		return unit{name: "inodes"}
	case traits.Resource == observe.ResourcePIDs:
		return unit{name: "processes"}
	}
	return unit{}
}

var binaryUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// bare writes an amount without the name of what is counted.
func (u unit) bare(n int64) string {
	if !u.binary || n == 0 {
		return thousands(n)
	}
	value, power := float64(n), 0
	for math.Abs(value) >= 1024 && power < len(binaryUnits)-1 {
		value, power = value/1024, power+1
	}
	decimals := 0
	switch whole := value == math.Trunc(value); {
	case whole || power == 0 || math.Abs(value) >= 100:
	case math.Abs(value) >= 10:
		decimals = 1
	default:
		decimals = 2
	}
	text := strconv.FormatFloat(value, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + binaryUnits[power]
}

// amount writes an amount.
func (u unit) amount(n int64) string {
	if u.name == "" {
		return u.bare(n)
	}
	return u.bare(n) + " " + u.name
}

func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// scale places amounts between the bottom and the top of a panel.
type scale struct {
	bottom, height float64
	most           float64
	// bend is where a compressed scale turns from even to logarithmic; 0 is an even one.
	bend float64
}

// compressFrom is how many times the highest threshold must be available at the
// most for the scale to be compressed: on an even one the threshold would lie on the
// axis, and nobody could see whether it was crossed.
const compressFrom = 8

func newScale(bottom, height float64, most, highestLimit int64) scale {
	s := scale{bottom: bottom, height: height, most: math.Max(1, float64(most))}
	if highestLimit > 0 && most/compressFrom > highestLimit {
		s.bend = float64(highestLimit)
	}
	return s
}

func (s scale) y(n int64) float64 {
	part := float64(n) / s.most
	if s.bend > 0 {
		part = math.Asinh(float64(n)/s.bend) / math.Asinh(s.most/s.bend)
	}
	return s.bottom - s.height*min(1, max(0, part))
}

// amountTick is an amount on an axis.
type amountTick struct {
	Y     float64
	Label string
}

// leastBetween is the room between two labels of an axis.
const leastBetween = 17.0

// ticks returns round amounts far enough apart, 0 first.
func (s scale) ticks(u unit) []amountTick {
	ticks := []amountTick{{s.y(0), u.bare(0)}}
	for _, n := range s.round(u) {
		y := s.y(n)
		if float64(n) > s.most || ticks[len(ticks)-1].Y-y < leastBetween {
			continue
		}
		ticks = append(ticks, amountTick{y, u.bare(n)})
	}
	return ticks
}

// round returns round amounts in rising order: multiples of one on an even scale,
// and ever larger ones on a compressed one.
func (s scale) round(u unit) []int64 {
	ladder := u.ladder()
	var amounts []int64
	if s.bend > 0 {
		for _, n := range ladder {
			if float64(n) >= s.bend/2 {
				amounts = append(amounts, n)
			}
		}
		return amounts
	}
	room := s.most * leastBetween * 1.5 / s.height
	for _, step := range ladder {
		if float64(step) < room {
			continue
		}
		for n := step; float64(n) <= s.most && n > 0 && len(amounts) < 100; n += step {
			amounts = append(amounts, n)
		}
		break
	}
	return amounts
}

// ladder returns amounts that people find round, rising.
func (u unit) ladder() []int64 {
	var amounts []int64
	if u.binary {
		for power := 0; power < 62; power++ {
			amounts = append(amounts, 1<<power)
		}
		return amounts
	}
	for n := int64(1); n < math.MaxInt64/10; n *= 10 {
		amounts = append(amounts, n, 2*n, 5*n)
	}
	return amounts
}
