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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/explain"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// top shows how a node stands, again and again.
type top struct {
	source   *source
	streams  Streams
	follow   bool
	interval time.Duration
	output   string
	before   observe.Observations
}

func newTop(streams Streams) *cobra.Command {
	x := &top{source: newSource(streams), streams: streams}
	x.source.lastOnly = true
	c := &cobra.Command{
		Use:   "top",
		Short: "Show how far each threshold is, and who would go if it were crossed now",
		Long: `Show each threshold: what is available, how much above the threshold that is, how long
it lasts at the present pace, and which pods would be evicted if it were crossed now, as
a dry run of the manager's own step, after what can be deleted first.

With --node the numbers are the kubelet's present ones (which needs get on nodes/proxy
and list on pods); with -f they are those of the journal's last record, and the pods
those of the last record that has any.`,
		Example: `  kubectl eviction top --node worker-1 --follow
  kubectl eviction top -f /var/log/kubelet-eviction/eviction.jsonl --follow`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(x.source.check(), checkOutput(x.output)); err != nil {
				return err
			}
			if x.follow && x.source.path == "-" {
				return errors.New("--follow reads a file again and again; the standard input can be read once")
			}
			if x.interval <= 0 {
				return fmt.Errorf("--interval %v: more than 0 belongs there", x.interval)
			}
			return x.run(c.Context())
		},
	}
	x.source.addFlags(c)
	c.Flags().BoolVar(&x.follow, "follow", false, "Go on until interrupted.")
	c.Flags().DurationVar(&x.interval, "interval", 2*time.Second, "The time between two looks with --follow.")
	addOutputFlag(c, &x.output)
	return c
}

func (x *top) run(ctx context.Context) error {
	shown := false
	for {
		node, err := x.look(ctx)
		if err != nil && shown && ctx.Err() == nil {
			// The file may be between two names, or have no pass yet.
			warn(x.streams.ErrOut, "%v", err)
			if !x.wait(ctx) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		shown = true
		if x.follow && x.streams.Width > 0 {
			fmt.Fprint(x.streams.Out, "\x1b[H\x1b[2J")
		}
		if err := x.show(node.Look()); err != nil {
			return err
		}
		if !x.follow || !x.wait(ctx) {
			return nil
		}
	}
}

// wait says whether to go on after the interval.
func (x *top) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(x.interval):
		return true
	}
}

// look finds out how the node stands.
func (x *top) look(ctx context.Context) (explain.Node, error) {
	latest := latest{gone: map[types.UID]bool{}}
	if err := x.source.read(ctx, latest.see); err != nil {
		return explain.Node{}, err
	}
	node, err := latest.node()
	if err != nil || x.source.node == "" {
		return node, err
	}
	if x.before != nil {
		node.Before = x.before
	}
	err = x.ask(ctx, &node)
	x.before = node.Seen.Observations
	return node, err
}

// ask fills in what the node and the API server say now.
func (x *top) ask(ctx context.Context, node *explain.Node) error {
	config, err := x.source.config.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", x.source.node, "proxy/stats/summary").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("node %s: its stats: %w", x.source.node, err)
	}
	var summary statsapi.Summary
	if err := json.Unmarshal(text, &summary); err != nil {
		return fmt.Errorf("node %s: its stats: %w", x.source.node, err)
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + x.source.node})
	if err != nil {
		return fmt.Errorf("the pods of node %s: %w", x.source.node, err)
	}
	node.Seen, node.At, node.Known, node.Pods = observe.FromSummary(&summary, observe.MemorySource{}), time.Now(), true, nil
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != v1.PodSucceeded && phase != v1.PodFailed {
			node.Pods = append(node.Pods, &pods.Items[i])
		}
	}
	return nil
}

// latest is the end of a journal.
type latest struct {
	config, last, before, withPods *journal.Record
	// gone are pods that were killed since.
	gone map[types.UID]bool
}

func (l *latest) see(r *journal.Record) error {
	switch r.Kind {
	case journal.KindConfig:
		l.config = r
	case journal.KindPass, journal.KindHeartbeat:
		l.before, l.last = l.last, r.Keep()
		if explain.Ranked(r) {
			l.withPods, l.gone = r, map[types.UID]bool{}
		}
		if r.Decision != nil {
			for _, kill := range r.Decision.Kills {
				l.gone[kill.UID] = true
			}
		}
	}
	return nil
}

func (l *latest) node() (explain.Node, error) {
	if l.config == nil || l.last == nil {
		return explain.Node{}, errors.New("the journal tells of no pass yet")
	}
	policy, err := l.config.Config.Policy()
	if err != nil {
		return explain.Node{}, err
	}
	input, err := l.last.Input(policy)
	if err != nil {
		return explain.Node{}, err
	}
	node := explain.Node{Name: l.config.Config.Node, At: l.last.Time, Policy: policy, Seen: input.Seen, Pods: input.Pods}
	node.State, _ = decide.Step(policy, input.Before, input.Pods, input.Seen, l.last.Time)
	if l.withPods != nil {
		pods, err := l.withPods.Input(policy)
		if err != nil {
			return explain.Node{}, err
		}
		observations := node.Seen.Observations
		node.Pods, node.Known = slices.DeleteFunc(pods.Pods, func(pod *v1.Pod) bool { return l.gone[pod.UID] }), true
		node.Seen = pods.Seen
		node.Seen.Observations = observations
	}
	if l.before != nil {
		before, err := l.before.Input(policy)
		if err != nil {
			return explain.Node{}, err
		}
		node.Before = before.Seen.Observations
	}
	return node, nil
}

func (x *top) show(look explain.Look) error {
	if x.output == outputJSON || x.output == outputYAML {
		return printObject(x.streams.Out, x.output, look)
	}
	out := x.streams.Out
	fmt.Fprintf(out, "%s  node %s", stamp(look.Time), look.Node)
	if len(look.Conditions) > 0 {
		fmt.Fprintf(out, "  %s", x.alarm(strings.Join(look.Conditions, " ")))
	}
	if len(look.InFlight) > 0 {
		fmt.Fprintf(out, "  evicting %s", strings.Join(look.InFlight, ", "))
	}
	fmt.Fprintln(out)
	t := table(out)
	fmt.Fprint(t, "SIGNAL\tKIND\tAVAILABLE\tOF\tTHRESHOLD\tHEADROOM\tLASTS\tWOULD GO NEXT")
	if x.output == outputWide {
		fmt.Fprint(t, "\tAFTER DELETING")
	}
	fmt.Fprintln(t)
	for _, row := range look.Signals {
		kind := "soft"
		if row.Hard {
			kind = "hard"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", row.Signal, kind, explain.Amount(row.Signal, row.Available), explain.Amount(row.Signal, row.Capacity),
			explain.Amount(row.Signal, row.Threshold), explain.Amount(row.Signal, row.Headroom), lasts(row), next(row))
		if x.output == outputWide {
			fmt.Fprintf(t, "\t%s", strings.Join(row.Reclaim, ", "))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func (x *top) alarm(text string) string {
	if x.streams.Color {
		return "\x1b[31m" + text + "\x1b[0m"
	}
	return text
}

func lasts(row explain.SignalRow) string {
	switch {
	case row.Headroom < 0:
		return "crossed"
	case row.Seconds == nil:
		return "-"
	case *row.Seconds > 100*time.Hour.Seconds():
		return ">100h"
	}
	return explain.Duration(time.Duration(math.Round(*row.Seconds)) * time.Second)
}

func next(row explain.SignalRow) string {
	const most = 3
	switch {
	case !row.Known:
		return "unknown, no pods recorded"
	case len(row.Next) == 0:
		return "nobody"
	case len(row.Next) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(row.Next[:most], ", "), len(row.Next)-most)
	}
	return strings.Join(row.Next, ", ")
}
