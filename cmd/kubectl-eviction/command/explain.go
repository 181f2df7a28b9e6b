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
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/explain"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

func newExplain(streams Streams) *cobra.Command {
	s := newSource(streams)
	var at, output string
	c := &cobra.Command{
		Use:   "explain [POD]",
		Short: "Say why a pod was evicted, why then, and what would have spared it",
		Long: `Say why a pod was evicted and why then: the shortage, the steps before, the pods in
the order of eviction with what put them there, what its end was expected to return
and what came back, and what would have spared it. What would have is found by taking
the recorded step again with the change.

Without a pod and a time all evictions of the journal are listed. With --at the pass at
that time is explained, whoever went or not.`,
		Example: `  kubectl eviction explain -f eviction.jsonl
  kubectl eviction explain leak -n default --node worker-1
  kubectl eviction explain --at 2026-11-30T03:00:00Z -f eviction.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := errors.Join(s.check(), checkOutput(output)); err != nil {
				return err
			}
			history := explain.History{}
			if at != "" {
				if len(arguments) > 0 {
					return errors.New("name a pod or a time, not both")
				}
				var err error
				if history.Until, err = parseTime(at, time.Now()); err != nil {
					return err
				}
			}
			err := s.read(c.Context(), func(r *journal.Record) error {
				history.See(r)
				return nil
			})
			if err != nil {
				return err
			}
			show := explanations{streams: streams, output: output}
			switch {
			case at != "":
				return show.moment(&history)
			case len(arguments) == 0:
				return show.list(history.Evictions)
			}
			return show.pod(&history, s, arguments[0])
		},
	}
	s.addFlags(c)
	c.Flags().StringVar(&at, "at", "", "Explain the pass at this time: RFC 3339 such as 2026-11-30T03:00:00Z, or a span before now such as 10m.")
	addOutputFlag(c, &output)
	return c
}

// parseTime parses a time or a span before now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	if span, err := time.ParseDuration(text); err == nil && span >= 0 {
		return now.Add(-span), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-11-30T03:00:00Z nor a span before now such as 10m", text)
}

// explanations are shown to people or programs.
type explanations struct {
	streams Streams
	output  string
}

func (x explanations) object() bool { return x.output == outputJSON || x.output == outputYAML }

// table aligns columns.
func table(to io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(to, 0, 0, 2, ' ', 0) }

func (x explanations) list(evictions []*explain.Eviction) error {
	if x.object() {
		if evictions == nil {
			evictions = []*explain.Eviction{}
		}
		return printObject(x.streams.Out, x.output, evictions)
	}
	if len(evictions) == 0 {
		fmt.Fprintln(x.streams.Out, "no pod was evicted")
		return nil
	}
	t := table(x.streams.Out)
	fmt.Fprint(t, "TIME\tPOD\tCAUSE\tEXPECTED\tMEASURED\tENDED AFTER")
	if x.output == outputWide {
		fmt.Fprint(t, "\tGRACE\tUID\tMESSAGE")
	}
	fmt.Fprintln(t)
	for _, e := range evictions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s", stamp(e.Time), e.Pod, e.Cause, amountIn(e.Expected, e.Cause), amountIn(e.Measured, e.Cause), ended(e))
		if x.output == outputWide {
			fmt.Fprintf(t, "\t%ds\t%s\t%s", e.GraceSeconds, e.Pod.UID, strings.TrimSpace(e.Message))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func amountIn(amounts map[evictionapi.Signal]int64, cause string) string {
	if n, found := amounts[evictionapi.Signal(cause)]; found {
		return explain.Amount(evictionapi.Signal(cause), n)
	}
	return "-"
}

func ended(e *explain.Eviction) string {
	for _, step := range e.Steps {
		if step.What == explain.ContainersEnded {
			return explain.Duration(time.Duration(step.After))
		}
	}
	return "-"
}

func (x explanations) pod(history *explain.History, s *source, argument string) error {
	namespace, name := "", argument
	if before, after, both := strings.Cut(argument, "/"); both {
		namespace, name = before, after
	} else if s.config.Namespace != nil {
		namespace = *s.config.Namespace
	}
	evictions := history.Of(namespace, name)
	if len(evictions) == 0 {
		fmt.Fprintf(x.streams.ErrOut, "%s: the journal of %s tells of no eviction of this pod; it tells of %d evictions, which explain without a pod lists\n", argument, s, len(history.Evictions))
		return errFound
	}
	if len(evictions) > 1 {
		warn(x.streams.ErrOut, "%d pods of this name were evicted; this is the last", len(evictions))
	}
	explanation, err := evictions[len(evictions)-1].Explain()
	if err != nil {
		return err
	}
	if x.object() {
		return printObject(x.streams.Out, x.output, explanation)
	}
	x.explain(explanation)
	return nil
}

// title marks a line on a terminal.
func (x explanations) title(text string) {
	if x.streams.Color {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	fmt.Fprintf(x.streams.Out, "\n%s\n", text)
}

func (x explanations) explain(e *explain.Explanation) {
	out := x.streams.Out
	fmt.Fprintf(out, "%s was evicted at %s", e.Pod, stamp(e.Time))
	if e.Node != "" {
		fmt.Fprintf(out, " on node %s", e.Node)
	}
	fmt.Fprintf(out, " for %s, with %ds to stop.\n", e.Cause, e.GraceSeconds)
	fmt.Fprintf(out, "  %s\n", strings.TrimSpace(e.Message))
	if e.Note != "" {
		fmt.Fprintf(out, "  Note: %s.\n", e.Note)
	}
	x.title("Why then")
	fmt.Fprintf(out, "  %s\n", e.Woken)
	for _, shortage := range e.Shortages {
		x.met(shortage.Met)
	}
	x.steps("In the ten minutes before", e.Before)
	for _, shortage := range e.Shortages {
		x.shortage(&shortage)
	}
	x.outcome(e)
	if len(e.WouldHaveSpared) > 0 {
		x.title("What would have spared it")
		for _, spared := range e.WouldHaveSpared {
			instead := "nobody would have gone"
			if len(spared.Instead) > 0 {
				instead = "in its place: " + strings.Join(spared.Instead, ", ")
			}
			if strings.HasPrefix(spared.Change, "a higher limit") || strings.Contains(spared.Change, "at that time") {
				fmt.Fprintf(out, "  %s\n", spared.Change)
				continue
			}
			fmt.Fprintf(out, "  %s (%s)\n", spared.Change, instead)
		}
	}
}

func (x explanations) met(met []explain.Met) {
	for _, m := range met {
		line := fmt.Sprintf("%s of %s available, and the threshold %s asks for %s", explain.Amount(m.Signal, m.Available), explain.Amount(m.Signal, m.Capacity), m.Threshold, explain.Amount(m.Signal, m.Quantity))
		if m.Goal != m.Quantity {
			line += fmt.Sprintf(" (%s until it is resolved)", explain.Amount(m.Signal, m.Goal))
		}
		if m.Since > 0 {
			line += ", for " + explain.Duration(time.Duration(m.Since))
		}
		if m.Age != nil {
			line += fmt.Sprintf("; the numbers were %s old", explain.Duration(time.Duration(*m.Age)))
		}
		fmt.Fprintf(x.streams.Out, "  %s\n", line)
	}
}

func (x explanations) steps(title string, steps []explain.Step) {
	if len(steps) == 0 {
		return
	}
	x.title(title)
	t := table(x.streams.Out)
	for _, step := range steps {
		when := explain.Duration(time.Duration(step.After))
		if step.After >= 0 {
			when = "+" + when
		}
		fmt.Fprintf(t, "  %s\t%s\n", when, step.What)
	}
	_ = t.Flush()
}

// shortage shows the order of the pods.
func (x explanations) shortage(s *explain.Shortage) {
	x.title(fmt.Sprintf("Short of %s", s.Resource))
	out := x.streams.Out
	fmt.Fprintf(out, "  %s missing to the goal, %s yet to come back from pods in flight.\n", s.Amount(s.Wanted), s.Amount(s.Pending))
	if len(s.Reclaim) > 0 {
		fmt.Fprintf(out, "  To be deleted before any pod: %s.\n", strings.Join(s.Reclaim, ", "))
	}
	if s.Outside {
		fmt.Fprintf(out, "  No pod is evicted: those that may be hold %s of the %s in use.\n", s.Amount(s.Held), s.Amount(s.Used))
	}
	if len(s.Spared) > 0 {
		fmt.Fprintf(out, "  Critical, and so never evicted: %s.\n", refs(s.Spared))
	}
	if len(s.Candidates) == 0 {
		return
	}
	const most = 15
	t := table(out)
	excess := "ABOVE REQUEST"
	switch {
	case s.Resource == observe.ResourcePIDs:
		excess = "PROCESSES"
	case s.Stalls():
		excess = "WAITED"
	case s.Resource == observe.ResourceSwap:
		excess = "IN SWAP"
	}
	fmt.Fprintf(t, "  #\tPOD\tUSES\tPRIORITY\t%s\tWOULD RETURN\t\n", excess)
	for i, candidate := range s.Candidates {
		victim := slices.ContainsFunc(s.Victims, func(v journal.Victim) bool { return v.UID == candidate.UID })
		if i >= most && !victim && x.output != outputWide {
			continue
		}
		mark := ""
		if victim {
			mark = "<- evicted"
		}
		fmt.Fprintf(t, "  %d\t%s\t%s\t%d\t%s\t%s\t%s\n", i+1, candidate.PodRef, group(candidate), candidate.Priority, excessOf(s, candidate), gain(s, candidate), mark)
	}
	_ = t.Flush()
	if rest := len(s.Candidates) - most; rest > 0 && x.output != outputWide {
		fmt.Fprintf(out, "  … and %d more, shown with -o wide\n", rest)
	}
}

func refs(pods []journal.PodRef) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.String())
	}
	return strings.Join(names, ", ")
}

func group(c journal.Candidate) string {
	switch c.Group {
	case "above":
		return "more than its request"
	case "within":
		return "no more than its request"
	case "unknown":
		return "unknown"
	}
	return "-"
}

func excessOf(s *explain.Shortage, c journal.Candidate) string {
	switch {
	case c.NoStats:
		return "unknown"
	case s.Resource == observe.ResourcePIDs:
		return fmt.Sprint(c.Processes)
	case s.Stalls():
		return s.Amount(c.Excess)
	}
	return s.Amount(c.Excess)
}

func gain(s *explain.Shortage, c journal.Candidate) string {
	if c.Gain == nil {
		return "unknown"
	}
	return s.Amount(*c.Gain)
}

func (x explanations) outcome(e *explain.Explanation) {
	x.steps("What came of it", e.Steps)
	if len(e.Steps) == 0 {
		x.title("What came of it")
		fmt.Fprintln(x.streams.Out, "  nothing is recorded yet")
	}
	for _, signal := range observe.Signals() {
		expected, found := e.Expected[signal]
		measured, known := e.Measured[signal]
		if !found || string(signal) != e.Cause && x.output != outputWide {
			continue
		}
		if known {
			fmt.Fprintf(x.streams.Out, "  %s: %s expected, %s more available in the end\n", signal, explain.Amount(signal, expected), explain.Amount(signal, measured))
		} else {
			fmt.Fprintf(x.streams.Out, "  %s: %s expected\n", signal, explain.Amount(signal, expected))
		}
	}
}

func (x explanations) moment(history *explain.History) error {
	if history.Last == nil {
		fmt.Fprintf(x.streams.ErrOut, "the journal has no pass as early as %s\n", stamp(history.Until))
		return errFound
	}
	m, err := history.Moment()
	if err != nil {
		return err
	}
	if x.object() {
		return printObject(x.streams.Out, x.output, m)
	}
	out := x.streams.Out
	fmt.Fprintf(out, "The last pass up to then was at %s", stamp(m.Time))
	if m.Node != "" {
		fmt.Fprintf(out, " on node %s", m.Node)
	}
	fmt.Fprintf(out, ": %s.\n", m.Woken)
	if len(m.Conditions) > 0 {
		fmt.Fprintf(out, "Conditions: %s\n", strings.Join(m.Conditions, ", "))
	}
	x.title("Seen")
	t := table(out)
	for _, signal := range observe.Signals() {
		if o, seen := m.Observations[signal]; seen {
			age := "-"
			if o.Age != nil {
				age = explain.Duration(time.Duration(*o.Age)) + " old"
			}
			fmt.Fprintf(t, "  %s\t%s of %s\t%s\t%s\n", signal, explain.Amount(signal, o.Available), explain.Amount(signal, o.Capacity), age, o.Source)
		}
	}
	_ = t.Flush()
	x.title("Thresholds that are met, or were and have not reached their goal")
	if len(m.Met) == 0 {
		fmt.Fprintln(out, "  none")
	}
	x.met(m.Met)
	for _, shortage := range m.Shortages {
		x.shortage(&shortage)
	}
	x.title("Decided")
	if len(m.Decided) == 0 {
		fmt.Fprintln(out, "  nothing was to be done")
	}
	for _, what := range m.Decided {
		fmt.Fprintf(out, "  %s\n", what)
	}
	x.steps("In the ten minutes before", m.Before)
	return nil
}
