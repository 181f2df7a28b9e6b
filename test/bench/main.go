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
// It prints a table with the ratio of the two, which carries over from machine
// to machine, unlike the times.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

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
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.AllGatesOff()); err != nil {
		return err
	}
	fmt.Printf("%5s %7s %12s %8s %6s %20s %16s\n", "pods", "load", "upstream ms", "ours ms", "ratio", "upstream allocs/pod", "ours allocs/pod")
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
			fmt.Printf("%5d %7s %12.3f %8.3f %6.1f %20.1f %16.2f\n", count, load.name, milliseconds(theirs), milliseconds(mine),
				milliseconds(theirs)/milliseconds(mine), float64(theirs.AllocsPerOp())/float64(count), float64(mine.AllocsPerOp())/float64(count))
		}
	}
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
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		newNode(load, pods).passes(b, start)
	})
}
