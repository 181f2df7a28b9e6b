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
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	mebi = int64(1) << 20
	gibi = int64(1) << 30
)

func below(signal evictionapi.Signal, quantity string) evictionapi.Threshold {
	q := resource.MustParse(quantity)
	return evictionapi.Threshold{Signal: signal, Operator: evictionapi.OpLessThan, Value: evictionapi.ThresholdValue{Quantity: &q}}
}

// curve is a probe of one signal that changes with time.
type curve struct {
	signal    evictionapi.Signal
	capacity  int64
	available func(since time.Duration) (int64, error)
	begin     time.Time

	mu    sync.Mutex
	looks int
}

func (c *curve) Signals() []evictionapi.Signal { return []evictionapi.Signal{c.signal} }

func (c *curve) Read(evictionapi.Signal) (observe.Observation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	available, err := c.available(time.Since(c.begin))
	return observe.Observation{Available: available, Capacity: c.capacity}, err
}

func (c *curve) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

// memory is 16 GiB of it.
func memory(available func(time.Duration) (int64, error)) *curve {
	return &curve{signal: evictionapi.SignalMemoryAvailable, capacity: 16 * gibi, available: available, begin: time.Now()}
}

// probing runs a prober inside a bubble of simulated time.
func probing(t *testing.T, story func(ctx context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		story(ctx, func(c *curve, thresholds ...evictionapi.Threshold) *Waker {
			waker := NewWaker()
			go NewProber(c, thresholds, waker).Run(ctx)
			return waker
		})
	})
}

func TestCrossingWakesTheLoopInTime(t *testing.T) {
	for _, test := range []struct {
		name string
		// from and loss, in MiB and MiB a second, begin after a calm while.
		from, loss int64
		calm       time.Duration
		within     time.Duration
	}{
		{"600 MiB/s from afar", 8 << 10, 600, 0, 60 * time.Millisecond},
		{"2 GiB/s from afar", 8 << 10, 2 << 10, 0, 60 * time.Millisecond},
		{"slow", 2 << 10, 10, 0, 60 * time.Millisecond},
		{"2 GiB/s out of the blue, 3 GiB away", 4 << 10, 2 << 10, time.Hour, 60 * time.Millisecond},
		{"2 GiB/s out of the blue, 200 MiB away", 1224, 2 << 10, time.Hour, 110 * time.Millisecond},
		{"at once", 1025, 100 << 10, time.Minute, 60 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			probing(t, func(ctx context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker) {
				waker := probe(memory(func(since time.Duration) (int64, error) {
					return int64(float64(test.from*mebi) - float64(test.loss*mebi)*max(0, (since-test.calm).Seconds())), nil
				}), below(evictionapi.SignalMemoryAvailable, "1Gi"))
				crossing := test.calm + time.Duration(float64(test.from-1024)/float64(test.loss)*float64(time.Second))
				begin := time.Now()
				for {
					wake := waker.Wait(ctx, 2*time.Hour, Interval)
					late := time.Since(begin) - crossing
					if late < 0 && late >= -fastestPace {
						continue // it woke for what was about to happen
					}
					if wake.Reason != Crossing || late < 0 || late > test.within {
						t.Fatalf("woken by %s %v after the crossing, want within %v", wake.Reason, late, test.within)
					}
					return
				}
			})
		})
	}
}

func TestPaceFollowsTheHeadroom(t *testing.T) {
	for _, test := range []struct {
		name      string
		available int64
		// looks a minute.
		least, most int
	}{
		{"far", 8 * gibi, 55, 65},
		{"2 GiB above", 3 * gibi, 55, 65},
		{"500 MiB above", 1524 * mebi, 200, 260},
		{"just above", gibi + 1, 1100, 1300},
	} {
		t.Run(test.name, func(t *testing.T) {
			probing(t, func(_ context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker) {
				c := memory(func(time.Duration) (int64, error) { return test.available, nil })
				probe(c, below(evictionapi.SignalMemoryAvailable, "1Gi"))
				time.Sleep(time.Minute)
				if looks := c.looked(); looks < test.least || looks > test.most {
					t.Errorf("%d looks a minute, want %d to %d", looks, test.least, test.most)
				}
			})
		})
	}
}

// TestStillBelow: a threshold that stays crossed wakes the loop less and less
// often, and at once when another percent of the capacity is gone.
func TestStillBelow(t *testing.T) {
	probing(t, func(ctx context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker) {
		begin := time.Now()
		waker := probe(memory(func(since time.Duration) (int64, error) {
			if since > 100*time.Second {
				return gibi / 2, nil
			}
			return gibi - 1, nil
		}), below(evictionapi.SignalMemoryAvailable, "1Gi"))
		var at []time.Duration
		for time.Since(begin) < 105*time.Second {
			waker.Wait(ctx, time.Hour, Interval)
			at = append(at, time.Since(begin).Round(time.Second))
		}
		want := []time.Duration{0, 1, 3, 7, 15, 25, 35, 45, 55, 65, 75, 85, 95, 100}
		for i := range want {
			if want[i] *= time.Second; i >= len(at) || at[i]-want[i] > 3*time.Second || want[i]-at[i] > 3*time.Second {
				t.Fatalf("woken at %v, want about %v", at, want)
			}
		}
	})
}

// TestCrossedAgain: what was above in between is as new.
func TestCrossedAgain(t *testing.T) {
	probing(t, func(ctx context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker) {
		begin := time.Now()
		waker := probe(memory(func(since time.Duration) (int64, error) {
			if since.Truncate(10*time.Second)%(20*time.Second) == 0 {
				return 2 * gibi, nil
			}
			return gibi - mebi, nil
		}), below(evictionapi.SignalMemoryAvailable, "1Gi"))
		for round := range 5 {
			wake := waker.Wait(ctx, time.Hour, Interval)
			for time.Since(begin) < time.Duration(20*round+10)*time.Second {
				wake = waker.Wait(ctx, time.Hour, Interval)
			}
			if late := time.Since(begin) - time.Duration(20*round+10)*time.Second; late > time.Second {
				t.Fatalf("round %d: woken by %s %v late", round, wake.Reason, late)
			}
			time.Sleep(9 * time.Second)
		}
	})
}

// TestHovering: a signal that goes up and down around its threshold wakes the loop
// about once a second.
func TestHovering(t *testing.T) {
	probing(t, func(ctx context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker) {
		begin := time.Now()
		waker := probe(memory(func(since time.Duration) (int64, error) {
			if since/(100*time.Millisecond)%2 == 0 {
				return gibi + mebi, nil
			}
			return gibi - mebi, nil
		}), below(evictionapi.SignalMemoryAvailable, "1Gi"))
		wakes := 0
		for time.Since(begin) < 30*time.Second {
			waker.Wait(ctx, time.Hour, Interval)
			wakes++
		}
		if wakes > 70 {
			t.Errorf("%d wake-ups in 30 s", wakes)
		}
	})
}

// TestFaultyProbe: a probe that cannot read wakes nobody, and is used again as
// soon as it can.
func TestFaultyProbe(t *testing.T) {
	probing(t, func(ctx context.Context, probe func(*curve, ...evictionapi.Threshold) *Waker) {
		c := memory(func(since time.Duration) (int64, error) {
			if since < 30*time.Second {
				return 0, errors.New("the file is gone")
			}
			return gibi / 2, nil
		})
		waker := probe(c, below(evictionapi.SignalMemoryAvailable, "1Gi"))
		begin := time.Now()
		waker.Wait(ctx, time.Hour, Interval)
		if woken := time.Since(begin); woken < 30*time.Second || woken > 32*time.Second {
			t.Errorf("woken after %v", woken)
		}
	})
}

func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fails := true
		var mu sync.Mutex
		c := memory(func(time.Duration) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			if fails {
				return 0, errors.New("gone")
			}
			return 8 * gibi, nil
		})
		prober := NewProber(c, []evictionapi.Threshold{below(c.signal, "1Gi"), below(evictionapi.SignalPIDAvailable, "5")}, NewWaker())
		go prober.Run(ctx)
		for _, now := range []bool{true, false, true} {
			mu.Lock()
			fails = now
			mu.Unlock()
			time.Sleep(2 * time.Second)
			if prober.Reads(c.signal) == now || prober.Reads(evictionapi.SignalPIDAvailable) {
				t.Errorf("fails %v: reads memory %v, processes %v", now, prober.Reads(c.signal), prober.Reads(evictionapi.SignalPIDAvailable))
			}
		}
	})
}

// TestStorm: however often the loop is woken, passes keep their gap; however
// often the prober is hurried, its looks keep theirs.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c := memory(func(time.Duration) (int64, error) { return 8 * gibi, nil })
		waker := NewWaker()
		prober := NewProber(c, []evictionapi.Threshold{below(c.signal, "1Gi")}, waker)
		go prober.Run(ctx)
		go func() {
			for ctx.Err() == nil {
				waker.Wake(Wake{Reason: Memcg, At: time.Now()})
				prober.Hurry()
				time.Sleep(100 * time.Microsecond)
			}
		}()
		passes := 0
		for ctx.Err() == nil {
			waker.Wait(ctx, time.Second, Interval)
			passes++
		}
		time.Sleep(time.Millisecond) // for the storm to end
		if passes > 510 || passes < 400 {
			t.Errorf("%d passes in 10 s, want one each 20 ms", passes)
		}
		if looks := c.looked(); looks > 1010 {
			t.Errorf("%d looks in 10 s, want one each 10 ms at most", looks)
		}
	})
}

func TestWakesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waker := NewWaker()
		first := time.Now()
		seen := func(available int64) observe.Observations {
			return observe.Observations{evictionapi.SignalMemoryAvailable: {Available: available}}
		}
		waker.Wake(Wake{Reason: Memcg, At: first})
		time.Sleep(time.Millisecond)
		waker.Wake(Wake{Reason: Crossing, At: time.Now(), Seen: seen(1)})
		waker.Wake(Wake{Reason: Crossing, At: time.Now(), Seen: seen(2)})
		got := waker.Wait(t.Context(), time.Hour, Interval)
		if got.Reason != Memcg || !got.At.Equal(first) || got.Seen[evictionapi.SignalMemoryAvailable].Available != 2 {
			t.Errorf("got %+v", got)
		}
		if got := waker.Wait(t.Context(), time.Minute, Grace); got.Reason != Grace {
			t.Errorf("woken a second time: %+v", got)
		}
	})
}

func TestStaleAndConfirm(t *testing.T) {
	now := time.Now()
	memory := evictionapi.SignalMemoryAvailable
	wake := Wake{Reason: Crossing, At: now, Seen: observe.Observations{memory: {Available: gibi, Capacity: 16 * gibi, Time: now}}}
	for _, test := range []struct {
		name             string
		seen             observe.Observations
		stale, confirmed bool
	}{
		{"newer", observe.Observations{memory: {Available: 5, Capacity: 16 * gibi, Time: now.Add(time.Second)}}, false, false},
		{"without a time", observe.Observations{memory: {Available: 5, Capacity: 16 * gibi}}, false, false},
		{"absent", observe.Observations{}, true, false},
		{"older and different", observe.Observations{memory: {Available: 2 * gibi, Capacity: 16 * gibi, Time: now.Add(-time.Second)}}, true, false},
		{"older and alike", observe.Observations{memory: {Available: gibi + 100*mebi, Capacity: 16 * gibi, Time: now.Add(-time.Second)}}, true, true},
		{"older and absurd", observe.Observations{memory: {Available: math.MinInt64, Capacity: 16 * gibi, Time: now.Add(-time.Second)}}, true, false},
	} {
		if stale := wake.Stale(test.seen); (len(stale) > 0) != test.stale {
			t.Errorf("%s: stale %v", test.name, stale)
		}
		wake.Confirm(test.seen)
		if stale := wake.Stale(test.seen); test.stale && (len(stale) == 0) != test.confirmed {
			t.Errorf("%s: after confirming, stale %v", test.name, stale)
		}
	}
}

func TestTrends(t *testing.T) {
	start := time.Now()
	at := func(seconds float64, available int64) observe.Observations {
		return observe.Observations{evictionapi.SignalNodeFsAvailable: {
			Available: available, Capacity: 100 * gibi, Time: start.Add(time.Duration(seconds * float64(time.Second))),
		}}
	}
	thresholds := []evictionapi.Threshold{below(evictionapi.SignalNodeFsAvailable, "10Gi")}
	none := func(evictionapi.Signal) bool { return false }
	const never = time.Duration(math.MaxInt64)
	var trends Trends
	for i, step := range []struct {
		seen   observe.Observations
		probed func(evictionapi.Signal) bool
		want   time.Duration
	}{
		{at(0, 60*gibi), none, never},
		{at(10, 50*gibi), none, 20 * time.Second}, // 1 GiB/s, 40 GiB left
		{at(10, 50*gibi), none, never},            // the same again is no news
		{at(20, 11*gibi), none, shortestTrend},    // close
		{at(30, 12*gibi), none, never},            // it recovers
		{at(40, 11*gibi), func(evictionapi.Signal) bool { return true }, never},
		{at(50, 9*gibi), none, never}, // below already
	} {
		if got := trends.Next(thresholds, step.seen, step.probed); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

// TestPaceProperties: whatever the readings, the pace stays within its bounds,
// a crossing wakes at once, and nothing above its threshold wakes unless it is
// about to cross.
func TestPaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w watch
		now := time.Unix(1e9, 0)
		calm := true // well above the threshold when last looked at
		for range rapid.IntRange(1, 50).Draw(t, "looks") {
			headroom := rapid.Int64().Draw(t, "headroom") / 2
			capacity := rapid.Int64Range(0, math.MaxInt64).Draw(t, "capacity")
			next, woken := w.see(headroom, capacity, now)
			if next < fastestPace || next > slowestPace {
				t.Fatalf("the next look is in %v", next)
			}
			if calm && headroom < 0 && !woken {
				t.Fatal("a crossing woke nobody")
			}
			if headroom > 0 && woken && float64(headroom)/fastestPace.Seconds() > w.loss {
				t.Fatalf("woken with %d left, at a loss of %g a second", headroom, w.loss)
			}
			calm = headroom > capacity/hover
			now = now.Add(next)
		}
	})
}
