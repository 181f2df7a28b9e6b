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

// Command bench_node measures how long a real node is short of memory or disk,
// with upstream's kubelet and with ours in turn, on sandboxed nodes of this
// machine (hack/node; needs root):
//
//	go run ./test/bench_node [-times 3] [-kinds memory,disk] [-rate 100]
//
// An observer outside the kubelet samples what is available every 10 ms. It
// prints the medians of what each kubelet took from the crossing to its
// decision, to the first signal to the hog and until the resource was back
// above the threshold, and the ratio, which carries over from machine to
// machine, unlike the times.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// outcome is what one run showed. Durations are in seconds from the crossing;
// NaN is what did not happen.
type outcome struct {
	Decision  float64 // the kubelet said that it reclaims
	Signal    float64 // the hog got SIGTERM
	Back      float64 // available was above the threshold again
	Overshoot float64 // MiB below the threshold, at the worst
	OOMKills  float64 // by the kernel, on the whole machine
	CPU       float64 // seconds that the kubelet used, from the hog's start until back
}

var measures = []struct {
	name  string
	value func(outcome) float64
}{
	{"crossing to decision, s", func(o outcome) float64 { return o.Decision }},
	{"crossing to first signal, s", func(o outcome) float64 { return o.Signal }},
	{"crossing to back above, s", func(o outcome) float64 { return o.Back }},
	{"overshoot, MiB", func(o outcome) float64 { return o.Overshoot }},
	{"kernel OOM kills", func(o outcome) float64 { return o.OOMKills }},
	{"kubelet CPU, s", func(o outcome) float64 { return o.CPU }},
}

// MarshalJSON writes what did not happen as null.
func (o outcome) MarshalJSON() ([]byte, error) {
	values := map[string]*float64{}
	for _, m := range measures {
		if v := m.value(o); math.IsNaN(v) {
			values[m.name] = nil
		} else {
			values[m.name] = &v
		}
	}
	return json.Marshal(values)
}

func main() {
	times := flag.Int("times", 3, "runs of each kubelet")
	kinds := flag.String("kinds", "memory,disk", "what runs short, with commas between them")
	rate := flag.Int("rate", 100, "MiB a second that the hog takes")
	flag.Parse()
	// Whoever ends the run wants the node down.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *times, strings.Split(*kinds, ","), *rate); err != nil {
		fmt.Fprintln(os.Stderr, "bench_node:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, times int, kinds []string, rate int) error {
	log, err := os.Create("_output/bench-node.jsonl")
	if err != nil {
		return err
	}
	defer log.Close()
	for _, kind := range kinds {
		experiment, found := experiments[kind]
		if !found {
			return fmt.Errorf("no experiment %q: memory or disk", kind)
		}
		outcomes := map[string][]outcome{}
		for i := range times {
			// In turn, so that a slow spell of the machine hits both.
			for _, flavour := range []string{"upstream", "patched"} {
				// Anywhere between two looks of the kubelet.
				phase := time.Duration(rand.Int64N(int64(10 * time.Second)))
				got, err := experiment.run(ctx, flavour, rate, phase)
				if err != nil {
					return fmt.Errorf("%s, %s kubelet: %w", kind, flavour, err)
				}
				fmt.Printf("%s %d/%d %-8s decision %.2f s, signal %.2f s, back %.2f s, overshoot %.0f MiB\n", kind, i+1, times, flavour, got.Decision, got.Signal, got.Back, got.Overshoot)
				if err := json.NewEncoder(log).Encode(map[string]any{"kind": kind, "kubelet": flavour, "rate": rate, "outcome": got}); err != nil {
					return err
				}
				outcomes[flavour] = append(outcomes[flavour], got)
			}
		}
		fmt.Printf("\n%s at %d MiB/s, medians of %d\n%-30s %9s %9s %6s\n", kind, rate, times, "", "upstream", "ours", "ratio")
		for _, m := range measures {
			upstream, ours := median(outcomes["upstream"], m.value), median(outcomes["patched"], m.value)
			fmt.Printf("%-30s %9.2f %9.2f %6.1f\n", m.name, upstream, ours, upstream/ours)
		}
		fmt.Println()
	}
	return nil
}

// median counts what never happened as infinitely long.
func median(outcomes []outcome, value func(outcome) float64) float64 {
	var values []float64
	for _, o := range outcomes {
		if v := value(o); math.IsNaN(v) {
			values = append(values, math.Inf(1))
		} else {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// experiment is a hog, a threshold and where to look.
type experiment struct {
	// config is the kubelet's, for a threshold this many MiB below what is
	// available at the start.
	config func(room int) (string, error)
	// hog is the program's arguments.
	hog []string
	// available finds the reader of what is left, in bytes, and the threshold.
	available func(node node, room int) (read func() (int64, error), threshold int64, err error)
	// room is what the hog may take before the threshold is crossed, in MiB.
	room int
}

func (e experiment) run(ctx context.Context, flavour string, rate int, phase time.Duration) (outcome, error) {
	config, err := e.config(e.room)
	if err != nil {
		return outcome{}, err
	}
	node := node{name: "bench"}
	defer node.down()
	if err := node.up(ctx, flavour, config); err != nil {
		return outcome{}, err
	}
	read, threshold, err := e.available(node, e.room)
	if err != nil {
		return outcome{}, err
	}
	select {
	case <-ctx.Done():
		return outcome{}, ctx.Err()
	case <-time.After(phase):
	}
	kubelet, err := node.kubelet()
	if err != nil {
		return outcome{}, err
	}
	oomBefore, cpuBefore := oomKills(), cpuSeconds(kubelet)
	if err := node.runHog(ctx, e.hog, rate); err != nil {
		return outcome{}, err
	}
	crossed, back, lowest, err := watch(ctx, read, threshold)
	if err != nil {
		return outcome{}, err
	}
	got := outcome{
		Decision: math.NaN(), Signal: math.NaN(), Back: back.Sub(crossed).Seconds(),
		Overshoot: float64(threshold-lowest) / (1 << 20), OOMKills: oomKills() - oomBefore, CPU: cpuSeconds(kubelet) - cpuBefore,
	}
	// The stamp and the log may be written a little later.
	time.Sleep(500 * time.Millisecond)
	if at, err := node.decided(crossed); err == nil {
		got.Decision = at.Sub(crossed).Seconds()
	}
	if at, err := node.signalled(); err == nil {
		got.Signal = at.Sub(crossed).Seconds()
	}
	return got, nil
}

// sampling is often beside what is measured, and seldom enough to cost nothing.
const sampling = 10 * time.Millisecond

// giveUp is longer than any kubelet takes.
const giveUp = 3 * time.Minute

// watch returns when available fell below the threshold, when it was above
// again, and the lowest between.
func watch(ctx context.Context, read func() (int64, error), threshold int64) (crossed, back time.Time, lowest int64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, giveUp, errors.New("nothing happened"))
	defer cancel()
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	lowest = math.MaxInt64
	for {
		select {
		case <-ctx.Done():
			return crossed, back, lowest, context.Cause(ctx)
		case now := <-ticker.C:
			available, err := read()
			if err != nil {
				return crossed, back, lowest, err
			}
			lowest = min(lowest, available)
			switch cmp.Compare(available, threshold) {
			case -1:
				if crossed.IsZero() {
					crossed = now
				}
			default:
				if !crossed.IsZero() {
					return crossed, now, lowest, nil
				}
			}
		}
	}
}
