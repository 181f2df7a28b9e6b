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
//	go run ./test/bench [-pods 110,500,5000] [-time 2s]
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
	"text/tabwriter"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

func main() {
	testing.Init()
	pods := flag.String("pods", "110,500,5000", "numbers of pods, with commas between them")
	duration := flag.Duration("time", 2*time.Second, "how long each measurement takes")
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
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "pods\tload\tupstream ms\tours ms\tratio\tupstream allocs/pod\tours allocs/pod\t")
	for _, text := range strings.Split(pods, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return fmt.Errorf("-pods: %q is not a number of pods", text)
		}
		for _, load := range loads {
			theirs := measure(startUpstream, load, count)
			mine := measure(startOurs, load, count)
			if theirs.N == 0 || mine.N == 0 {
				return fmt.Errorf("%d pods, %s: the measurement failed", count, load.name)
			}
			fmt.Fprintf(table, "%d\t%s\t%.3f\t%.3f\t%.1f\t%.1f\t%.2f\t\n", count, load.name, milliseconds(theirs), milliseconds(mine),
				milliseconds(theirs)/milliseconds(mine), float64(theirs.AllocsPerOp())/float64(count), float64(mine.AllocsPerOp())/float64(count))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(r testing.BenchmarkResult) float64 {
	return float64(r.T.Nanoseconds()) / float64(r.N) / 1e6
}

func measure(start starter, load load, pods int) testing.BenchmarkResult {
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		newNode(load, pods).passes(b, start)
	})
}
