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

package timeline_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/timeline"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

const gib = 1 << 30

// configured is the first record of a journal that watches 64 GiB of memory.
func configured(thresholds string) *journal.Record {
	line := fmt.Sprintf(`{"v":1,"seq":1,"time":"2026-03-01T00:00:00Z","kind":"config","config":{"node":"worker-1","thresholds":[%s],"layout":{},"pressureTransitionPeriod":300,"maxPodGracePeriodSeconds":0,"localStorageLimits":true,"featureGates":{"EvictionConcurrentKills":true}}}`, thresholds)
	record, err := journal.Decode([]byte(line))
	if err != nil {
		panic(err)
	}
	return record
}

const hard1Gi = `{"signal":"memory.available","operator":"LessThan","value":{"quantity":"1Gi"}}`

// seen is a heartbeat that saw an amount of memory.
func seen(sequence int, at time.Time, memory int64) *journal.Record {
	return &journal.Record{
		Version: 1, Sequence: uint64(sequence), Time: at, Kind: journal.KindHeartbeat, Wake: &journal.Wake{Reason: "interval"},
		Observations: journal.Observations{evictionapi.SignalMemoryAvailable: {Available: memory, Capacity: 64 * gib}},
	}
}

func collect(t fataler, window timeline.Window, records ...*journal.Record) *timeline.Timeline {
	collector := timeline.NewCollector(window, nil)
	for _, r := range records {
		if err := collector.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return collector.Timeline()
}

type fataler interface{ Fatal(...any) }

// TestNothingIsLost: every number that was seen in the window lies between the lowest
// and the highest of a kept extent of its time, the lowest and the highest of all are
// numbers that were seen, and every kill, reclaim and pass is counted.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := []*journal.Record{configured(hard1Gi)}
		at := midnight
		steps := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 400).Draw(t, "steps")
		scale := rapid.SampledFrom([]int64{1_000_000, 1000, 1}).Draw(t, "scale")
		kills := map[int]bool{}
		for i, step := range steps {
			at = at.Add(time.Duration(step / scale))
			r := seen(i+2, at, rapid.Int64Range(0, 64*gib).Draw(t, "memory"))
			if rapid.IntRange(0, 9).Draw(t, "kills") == 0 {
				kills[i+1] = true
				r.Kind = journal.KindPass
				pod := journal.PodRef{Namespace: "default", Name: fmt.Sprint("p", i)}
				r.Decision = &journal.Decision{
					Kills:    []journal.Kill{{Eviction: journal.Eviction{PodRef: pod, Cause: "memory.available"}}},
					Reclaims: []journal.ReclaimOrder{{Filesystem: "nodefs", Signal: "nodefs.available"}},
				}
			}
			records = append(records, r)
		}
		from := rapid.IntRange(1, len(records)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(records)-1).Draw(t, "to")
		window := timeline.Window{From: records[from].Time, To: records[to].Time}
		drawn := collect(t, window, records...)
		within, killed := 0, 0
		extents := drawn.Signals[0].Available.Extents()
		lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
		for i, r := range records[1:] {
			if r.Time.Before(window.From) || r.Time.After(window.To) {
				continue
			}
			within++
			if kills[i+1] {
				killed++
			}
			value := r.Observations[evictionapi.SignalMemoryAvailable].Available
			lowest, highest = min(lowest, value), max(highest, value)
			if !kept(extents, r.Time, value) {
				t.Fatalf("%d at %s is in no extent", value, r.Time)
			}
		}
		whole := drawn.Signals[0].Available.Whole()
		if whole.N != within || whole.Least.Value != lowest || whole.Most.Value != highest {
			t.Fatalf("%d points of %d..%d are kept, %d of %d..%d were seen", whole.N, whole.Least.Value, whole.Most.Value, within, lowest, highest)
		}
		if drawn.Passes != within || drawn.Reclaims.Count() != killed {
			t.Fatalf("%d passes and %d reclaims are drawn, %d and %d were recorded", drawn.Passes, drawn.Reclaims.Count(), within, killed)
		}
		if drawn.Kills.Count() < killed {
			t.Fatalf("%d kills are drawn, %d were recorded", drawn.Kills.Count(), killed)
		}
	})
}

func kept(extents []timeline.Extent, at time.Time, value int64) bool {
	for _, e := range extents {
		if !at.Before(e.First.At) && !at.After(e.Last.At) && value >= e.Least.Value && value <= e.Most.Value {
			return true
		}
	}
	return false
}

// TestAllKillsOfAMomentAreCounted: more kills than have a place are a number.
func TestAllKillsOfAMomentAreCounted(t *testing.T) {
	r := seen(2, midnight, gib/2)
	r.Kind, r.Decision = journal.KindPass, &journal.Decision{}
	for i := range 500 {
		pod := journal.PodRef{Namespace: "default", Name: fmt.Sprint("p", i)}
		r.Decision.Kills = append(r.Decision.Kills, journal.Kill{Eviction: journal.Eviction{PodRef: pod, Cause: "memory.available"}})
	}
	drawn := collect(t, timeline.Window{}, configured(hard1Gi), r)
	listed, more := len(drawn.Kills.Kept()), 0
	for _, crowd := range drawn.Kills.Crowds() {
		more += crowd.N
	}
	if drawn.Kills.Count() != 500 || listed+more != 500 {
		t.Errorf("of 500 kills %d are counted, %d are listed and %d more", drawn.Kills.Count(), listed, more)
	}
	if texts := strings.Join(wellFormed(t, svg(t, drawn)), "\n"); !strings.Contains(texts, "500 kills") || !strings.Contains(texts, fmt.Sprint("and ", more, " more")) {
		t.Error("the drawing does not say how many there are")
	}
}

// TestASpikeIsDrawn: one record of 200,000 saw memory nearly gone, and the line goes
// down to it, in a drawing that is no larger than that of a short journal.
func TestASpikeIsDrawn(t *testing.T) {
	collector := timeline.NewCollector(timeline.Window{}, nil)
	if err := collector.Add(configured(hard1Gi)); err != nil {
		t.Fatal(err)
	}
	for i := range 200_000 {
		memory := int64(32*gib + i%1000)
		if i == 123_456 {
			memory = gib / 2
		}
		if err := collector.Add(seen(i+2, midnight.Add(time.Duration(i)*10*time.Second), memory)); err != nil {
			t.Fatal(err)
		}
	}
	drawing := svg(t, collector.Timeline())
	line := regexp.MustCompile(`class="line available" d="(M[0-9.]+ [0-9][^"]*)"`).FindStringSubmatch(drawing)
	limit := regexp.MustCompile(`class="line hard" d="M[0-9.]+ ([0-9.]+)`).FindStringSubmatch(drawing)
	if line == nil || limit == nil {
		t.Fatal("no line")
	}
	threshold, _ := strconv.ParseFloat(limit[1], 64)
	below := 0
	for _, point := range regexp.MustCompile(`[ML][0-9.]+ ([0-9.]+)`).FindAllStringSubmatch(line[1], -1) {
		if y, _ := strconv.ParseFloat(point[1], 64); y > threshold {
			below++
		}
	}
	if below != 1 {
		t.Errorf("%d points of the line lie below the threshold, one was seen", below)
	}
	if most := 400 << 10; len(drawing) > most {
		t.Errorf("the drawing has %d bytes", len(drawing))
	}
}

// TestGaps: where the journal tells nothing there is no line.
func TestGaps(t *testing.T) {
	dropped := seen(5, midnight.Add(20*time.Second), 5*gib)
	dropped.Dropped = 2
	for name, test := range map[string]struct {
		next *journal.Record
		what string
	}{
		"nothing":                {seen(3, midnight.Add(20*time.Second), 5*gib), ""},
		"dropped records":        {dropped, "2 records could not be written"},
		"a restart":              {seen(1, midnight.Add(20*time.Second), 5*gib), "the kubelet was restarted"},
		"records of a lost file": {seen(40, midnight.Add(20*time.Second), 5*gib), "37 records are missing"},
		"silence":                {seen(3, midnight.Add(2*time.Hour), 5*gib), "no records for 1 h 59 min"},
		"a clock set back":       {seen(3, midnight.Add(5*time.Second), 5*gib), "the clock was set back by 5 s"},
	} {
		t.Run(name, func(t *testing.T) {
			drawn := collect(t, timeline.Window{}, configured(hard1Gi), seen(2, midnight.Add(10*time.Second), 6*gib), test.next)
			text := svg(t, drawn)
			wellFormed(t, text)
			if test.what == "" {
				if strings.Contains(text, `class="gap"`) {
					t.Error("there is a gap")
				}
				return
			}
			if !strings.Contains(text, `class="gap"`) || !strings.Contains(text, test.what) {
				t.Errorf("no gap says %q", test.what)
			}
			line := regexp.MustCompile(`class="line available" d="(M[0-9.]+ [0-9][^"]*)"`).FindStringSubmatch(text)[1]
			if strings.Count(line, "M") != 2 {
				t.Errorf("the line goes on over the gap: %s", line)
			}
		})
	}
}

// TestMarkupIsText: what a journal says is text in a drawing, whatever it is.
func TestMarkupIsText(t *testing.T) {
	const nasty = "</title><script>alert(1)</script>\x01&\""
	r := seen(2, midnight, gib/2)
	r.Kind = journal.KindPass
	r.Decision = &journal.Decision{Kills: []journal.Kill{{Eviction: journal.Eviction{
		PodRef: journal.PodRef{Namespace: nasty, Name: nasty}, Cause: "memory.available", Message: nasty,
	}}}}
	config := configured(hard1Gi)
	config.Config.Node = nasty
	drawn := collect(t, timeline.Window{}, config, r)
	texts := strings.Join(wellFormed(t, svg(t, drawn)), "\n")
	if !strings.Contains(texts, "<script>alert(1)") {
		t.Error("the name of the pod is not in the drawing")
	}
	page := html(t, drawn)
	if strings.Contains(page, "<script") {
		t.Error("the page has a script in it")
	}
	for _, other := range []string{"http-equiv", "src=", "@import", "url(http"} {
		if strings.Contains(page, other) {
			t.Errorf("the page has %s in it: it must need nothing from elsewhere", other)
		}
	}
}

// FuzzDraw: no journal makes a drawing that does not open.
func FuzzDraw(f *testing.F) {
	for _, records := range [][]*journal.Record{
		{configured(hard1Gi), seen(2, midnight, gib), seen(1, midnight.Add(-time.Hour), -5)},
		{seen(2, time.Time{}, math.MaxInt64), seen(3, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), math.MinInt64)},
	} {
		text := ""
		for _, r := range records {
			line, err := json.Marshal(r)
			if err != nil {
				f.Fatal(err)
			}
			text += string(line) + "\n"
		}
		f.Add(text)
	}
	f.Add(`{"v":1,"seq":2,"time":"2026-03-01T00:00:00Z","kind":"pass","thresholds":[{"index":7,"signal":"memory.available"}],"state":{"inFlight":[{"name":"a","decided":-9223372036,"killed":9e9}]},"released":[{}],"decision":{"shortages":[{"reclaim":["x"]}],"reclaims":[{}]}}` + "\n" +
		`{"v":1,"seq":3,"time":"2026-03-01T00:00:00Z","kind":"outcome","outcome":{"kind":"reclaimed","reclaim":{},"pod":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		collector := timeline.NewCollector(timeline.Window{}, nil)
		_ = journal.Read(strings.NewReader(text), collector.Add, func(*journal.LineError) error { return nil })
		if drawn := collector.Timeline(); drawn != nil {
			wellFormed(t, svg(t, drawn))
			html(t, drawn)
		}
	})
}
