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

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// simulate lets a node of the user's making live.
type simulate struct {
	streams  Streams
	upstream bool
	gates    map[string]string
	journal  string
	output   string
}

func newSimulate(streams Streams) *cobra.Command {
	s := &simulate{streams: streams}
	c := &cobra.Command{
		Use:   "simulate SCENARIO",
		Short: "Let a node of your making live in simulated time",
		Long: `Let a node of your making live in simulated time, under this project's manager or,
with --upstream, under upstream's of the same Kubernetes beside it. Hours take seconds.

A scenario is a file of a few lines, or - for the standard input:

  node memory=16Gi nodefs=100Gi unused-images=20Gi for=2m
  hard memory.available<1Gi
  soft nodefs.available<15% for 1m
  pod leak memory=8Gi+600Mi/s
  pod db memory=2Gi memory-request=3Gi priority=1000

A quantity may grow or shrink, as leak's memory does. The settings of a node and of a
pod are listed in docs/simulate.md. Lines that begin with # are comments.`,
		Example: `  kubectl eviction simulate node.txt
  kubectl eviction simulate node.txt --upstream
  kubectl eviction simulate node.txt --journal node.jsonl && kubectl eviction plot node.jsonl -o node.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error { return s.run(arguments[0]) },
	}
	c.Flags().BoolVar(&s.upstream, "upstream", false, "Show upstream's manager beside ours.")
	c.Flags().StringToStringVar(&s.gates, "feature-gates", nil, "This project's gates, such as EvictionEvidence=false; the others are as by default.")
	c.Flags().StringVar(&s.journal, "journal", "", "Write our manager's journal to this file.")
	addOutputFlag(c, &s.output)
	return c
}

func (s *simulate) run(path string) error {
	if err := checkOutput(s.output); err != nil {
		return err
	}
	spec, err := s.scenario(path)
	if err != nil {
		return err
	}
	gates := simnode.GatesByDefault()
	for name, value := range s.gates {
		if _, known := gates[name]; !known {
			return fmt.Errorf("--feature-gates: %s is no gate of this project; they are %s", name, strings.Join(sets.List(sets.KeySet(gates)), ", "))
		}
		switch value {
		case "true", "false":
			gates[name] = value == "true"
		default:
			return fmt.Errorf("--feature-gates: %s=%s: true or false belongs there", name, value)
		}
	}
	metrics.Register()
	var lives lives
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return err
	}
	var records []byte
	inSimulatedTime(func(t *testing.T) { lives.Ours, records = simnode.LiveRecorded(t, spec) })
	if s.journal != "" {
		if err := os.WriteFile(s.journal, records, 0o644); err != nil {
			return err
		}
	}
	if s.upstream {
		inSimulatedTime(func(t *testing.T) { lives.Upstream = simnode.Live(t, spec, simnode.Upstream) })
	}
	if s.output == outputJSON || s.output == outputYAML {
		return printObject(s.streams.Out, s.output, lives)
	}
	return s.print(lives)
}

func (s *simulate) scenario(path string) (simnode.Spec, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(s.streams.In)
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return simnode.Spec{}, err
	}
	spec, err := simnode.Parse(string(text))
	if err != nil {
		return spec, fmt.Errorf("%s: %w", path, err)
	}
	if len(spec.Hard)+len(spec.Soft) == 0 && len(spec.Pods) == 0 {
		return spec, errors.New(path + ": neither thresholds nor pods are given, so nothing can happen")
	}
	return spec, nil
}

// inSimulatedTime runs f with time as a test has it: testing/synctest, whose time a
// node lives in, has no other way in. A test puts its own in this place.
var inSimulatedTime = func(f func(t *testing.T)) {
	startTest()
	inTest <- f
	<-testDone
}

var (
	inTest   = make(chan func(*testing.T))
	testDone = make(chan struct{})
)

// startTest begins a test that runs whatever is sent to inTest and never ends: when
// tests end, the testing package ends the process.
var startTest = sync.OnceFunc(func() {
	os.Args = os.Args[:1] // the testing package parses them
	go testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "simulate",
		F: func(t *testing.T) {
			for f := range inTest {
				f(t)
				testDone <- struct{}{}
			}
		},
	}}, nil, nil)
})

// lives are what happened under each manager, a line each, beginning with the time.
type lives struct {
	Ours     []string `json:"ours"`
	Upstream []string `json:"upstream,omitempty"`
}

// happened is a line of a life.
type happened struct {
	at   time.Duration
	side int
	what string
}

// inShort are what a person looks for; -o wide shows everything.
var inShort = []string{"kill ", "delete ", "conditions:", "out of memory"}

func (s *simulate) print(lives lives) error {
	var all []happened
	for side, life := range [][]string{lives.Ours, lives.Upstream} {
		for _, line := range life {
			stamp, what, _ := strings.Cut(strings.TrimLeft(line, " "), "  ")
			at, err := time.ParseDuration(stamp)
			if err != nil {
				return fmt.Errorf("a line of the node's life has no time: %q", line)
			}
			what, _, _ = strings.Cut(what, "; refuses ")
			short := slices.ContainsFunc(inShort, func(prefix string) bool { return strings.HasPrefix(what, prefix) })
			if short || s.output == outputWide {
				all = append(all, happened{at, side, strings.TrimSuffix(what, " evicted=true phase=Failed reason=Evicted")})
			}
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(s.streams.Out, "nothing happens")
		return nil
	}
	slices.SortStableFunc(all, func(a, b happened) int { return int(a.at - b.at) })
	t := table(s.streams.Out)
	if lives.Upstream == nil {
		for _, h := range all {
			fmt.Fprintf(t, "%s\t%s\n", h.at, h.what)
		}
		return t.Flush()
	}
	fmt.Fprintln(t, "TIME\tOURS\tUPSTREAM")
	for _, h := range all {
		columns := [2]string{}
		columns[h.side] = h.what
		fmt.Fprintf(t, "%s\t%s\t%s\n", h.at, columns[0], columns[1])
	}
	return t.Flush()
}
