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

package conformance

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// TestDifferential lets random nodes live under upstream's manager and under
// ours. The traces must be equal, line by line and moment by moment.
func TestDifferential(t *testing.T) {
	if err := flag.Set("rapid.checks", strconv.Itoa(*nodes)); err != nil {
		t.Fatal(err)
	}
	var tally tally
	rapid.Check(t, func(rt *rapid.T) {
		spec := randomNode.Draw(rt, "node")
		rt.Logf("The node:\n%s", spec)
		if complaint := compare(t, spec, &tally); complaint != "" {
			rt.Fatal(complaint)
		}
	})
	if share := float64(tally.inPart) / float64(tally.nodes); tally.nodes >= 100 && share > mostInPart {
		t.Errorf("%.1f%% of the nodes were compared in part only; that proves too little", 100*share)
	}
	report("differential nodes %d (%s)", tally.nodes, tally)
}

// tally counts how the nodes were compared.
type tally struct {
	nodes, evicting, asSets, inPart int
}

func (t tally) String() string {
	return fmt.Sprintf("%d with evictions, %d compared as sets since upstream's own choice is random, %d of these up to a random choice that did not recur",
		t.evicting, t.asSets, t.inPart)
}

const (
	// sameChoices is how many of upstream's lives must agree with ours up to a
	// line, and all part there, before ours counts as wrong. The least likely
	// choice from a small map is one in eight (iteration starts at a random one
	// of eight slots), so one that upstream can make is missed once in ten
	// million times.
	sameChoices = 120
	// mostLives bounds how often upstream lives one node: enough that sameChoices
	// of its lives come as far as ours does beyond a choice of one in eight.
	mostLives = 1200
	// enoughLives is when a node is given up as too random: where upstream's own
	// lives still part from each other in the line in which ours parts from them.
	enoughLives = 60
	// mostInPart bounds the share of nodes that are compared in part only.
	mostInPart = 0.05
)

// compare returns what is wrong, or nothing.
//
// Upstream keeps met thresholds in a map, and handles whichever comes first of
// those that are equally urgent. So one node can have several traces under
// upstream, and ours must be one of them: when the first does not match,
// upstream lives the node again, until a trace matches, or until so many have
// parted from ours in the same line that ours would have been among them if it
// could be. As long as all of upstream's do the same thing in that line this
// goes on to the end, since it is no sign of a random choice. Where they differ
// from each other it is one, and after enoughLives the node counts as compared
// up to there.
func compare(t *testing.T, spec simnode.Spec, tally *tally) string {
	tally.nodes++
	mine := simnode.Live(t, spec, simnode.Ours)
	if slices.ContainsFunc(mine, func(line string) bool { return strings.Contains(line, "  kill ") }) {
		tally.evicting++
	}
	furthest := -1
	// parting holds upstream's traces that come as far as any, by the line in
	// which they part from ours.
	var parting map[string][][]string
	for lives := range mostLives {
		trace := simnode.Live(t, spec, simnode.Upstream)
		if slices.Equal(mine, trace) {
			if lives > 0 {
				tally.asSets++
			}
			return ""
		}
		agrees := common(mine, trace)
		if agrees > furthest {
			furthest, parting = agrees, map[string][][]string{}
		}
		if agrees == furthest {
			parting[line(trace, agrees)] = append(parting[line(trace, agrees)], trace)
		}
		all := 0
		for _, alike := range parting {
			all += len(alike)
		}
		switch {
		case all >= sameChoices:
			return difference(mine, trace, common(mine, trace))
		case len(parting) > 1 && lives >= enoughLives:
			tally.asSets++
			tally.inPart++
			return ""
		}
	}
	tally.asSets++
	tally.inPart++
	return ""
}

// common returns how many lines two traces begin with in common.
func common(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func line(trace []string, at int) string {
	if at < len(trace) {
		return trace[at]
	}
	return "the end"
}

func difference(mine, theirs []string, at int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the managers differ from line %d:\n", at+1)
	for i := max(0, at-8); i < min(at+6, max(len(mine), len(theirs))); i++ {
		if line(mine, i) == line(theirs, i) {
			fmt.Fprintf(&b, "  both      %s\n", line(mine, i))
			continue
		}
		fmt.Fprintf(&b, "  ours      %s\n  upstream  %s\n", line(mine, i), line(theirs, i))
	}
	return b.String()
}
