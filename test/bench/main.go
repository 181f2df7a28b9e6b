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

// Command bench measures a pass of the eviction manager beside one of
// upstream's, in one run on one machine, through the exported API alone:
//
//	go run ./test/bench [-pods 110,500,5000] [-time 1s]
//
// All gates are off but in the row "idle, on", which has those that change what a
// pass decides. It prints a table with the ratio of the two, which carries over from machine
// to machine, unlike the times; and, on Linux, what a read of each of this
// machine's own probes costs, and what an idle minute of a node does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe/machine"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

func main() {
	testing.Init()
	pods := flag.String("pods", "110,500,5000", "numbers of pods, with commas between them")
	duration := flag.Duration("time", time.Second, "how long each of three measurements takes")
	flag.Parse()
	if err := run(*pods, *duration); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(pods string, duration time.Duration) error {
	if err := flag.Set("test.benchtime", duration.String()); err != nil {
		return err
	}
	fmt.Printf("%5s %8s %12s %8s %6s %20s %16s\n", "pods", "load", "upstream ms", "ours ms", "ratio", "upstream allocs/pod", "ours allocs/pod")
	for _, text := range strings.Split(pods, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return fmt.Errorf("-pods: %q is not a number of pods", text)
		}
		for _, load := range loads {
			theirs, mine := measureBoth(load, count)
			if theirs.N == 0 || mine.N == 0 {
				return fmt.Errorf("%d pods, %s: the measurement failed", count, load.name)
			}
			fmt.Printf("%5d %8s %12.3f %8.3f %6.1f %20.1f %16.2f\n", count, load.name, milliseconds(theirs), milliseconds(mine),
				milliseconds(theirs)/milliseconds(mine), float64(theirs.AllocsPerOp())/float64(count), float64(mine.AllocsPerOp())/float64(count))
		}
	}
	return measureProbe()
}

// measureProbe prints the cost of looking, by this machine's own files.
func measureProbe() error {
	probe, missing := machine.Linux.NewProbe("/", true)
	defer probe.Close()
	if err := probe.AddFilesystem(observe.NodeFs, "/"); err != nil {
		missing = append(missing, err)
	}
	if len(missing) > 0 {
		fmt.Printf("\nno probe here of what this says: %v\n", errors.Join(missing...))
	}
	if len(probe.Signals()) == 0 {
		return nil
	}
	fmt.Printf("\n%-30s %8s %12s\n", "read of a probe", "us", "allocations")
	look := 0.0
	for _, signal := range probe.Signals() {
		// One that fails shows as no read at all.
		result := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := probe.Read(signal); err != nil {
					b.Fatal(err)
				}
			}
		})
		if result.N == 0 {
			return fmt.Errorf("%s could not be read", signal)
		}
		microseconds := milliseconds(result) * 1000
		look += microseconds
		fmt.Printf("%-30s %8.1f %12d\n", signal, microseconds, result.AllocsPerOp())
	}
	idle := measure(startOurs, loads[0], 110)
	if idle.N == 0 {
		return errors.New("the measurement of an idle pass failed")
	}
	minute := 60*look/1000 + 6*milliseconds(idle)
	fmt.Printf("an idle minute: 60 looks of %.0f us and 6 passes of %.3f ms (110 pods, without the summary) are %.2f ms, %.4f %% of a core\n",
		look, milliseconds(idle), minute, minute/60_000*100)
	return nil
}

func milliseconds(r testing.BenchmarkResult) float64 {
	return float64(r.T.Nanoseconds()) / float64(r.N) / 1e6
}

// rounds of measuring both in turn; the fastest of each counts, since whatever
// else the machine does can only slow a pass down.
const rounds = 3

func measureBoth(load load, pods int) (theirs, mine testing.BenchmarkResult) {
	for round := range rounds {
		a, b := measure(startUpstream, load, pods), measure(startOurs, load, pods)
		if round == 0 || milliseconds(a) < milliseconds(theirs) {
			theirs = a
		}
		if round == 0 || milliseconds(b) < milliseconds(mine) {
			mine = b
		}
	}
	return theirs, mine
}

func measure(start starter, load load, pods int) testing.BenchmarkResult {
	gates := simnode.AllGatesOff()
	for _, gate := range []string{"EvictionConcurrentKills", "EvictionEvidence", "EvictionTargetedReclaim"} {
		gates[gate] = load.on
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return testing.BenchmarkResult{} // which is an error to whoever asked
	}
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		newNode(load, pods).passes(b, start)
	})
}
