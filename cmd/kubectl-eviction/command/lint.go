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
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/lint"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// linting looks through a kubelet's configuration.
type linting struct {
	streams  Streams
	cluster  *genericclioptions.ConfigFlags
	files    lint.Files
	capacity string
	node     string
	failOn   string
	output   string
}

func newLint(streams Streams) *cobra.Command {
	l := &linting{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}
	c := &cobra.Command{
		Use:   "lint [KUBELET.YAML]",
		Short: "Show the eviction settings in effect, and what in them is hardly meant",
		Long: `Show the eviction settings that are in effect with a kubelet's configuration file, the
origin of each value, and what is hardly meant: a soft threshold that can never act,
default thresholds that are dropped, disks that nobody watches, and more. docs/lint.md
has a section on each finding.

Drop-in files are merged as the kubelet merges them. Many findings need the node's
capacities: write them with --node-capacity, or name a node. Without a file, --node
looks through what its kubelet is running with.

The exit status is 1 when there is a finding of the severity --fail-on or a higher one,
and 2 when the configuration cannot be read.`,
		Example: `  kubectl eviction lint /var/lib/kubelet/config.yaml
  kubectl eviction lint kubelet.yaml --config-dir kubelet.conf.d --node-capacity memory=16Gi,nodefs=100Gi
  kubectl eviction lint --node worker-1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, arguments []string) error {
			if len(arguments) == 1 {
				l.files.Config = arguments[0]
			}
			if err := l.check(); err != nil {
				return err
			}
			return l.run(c.Context())
		},
	}
	c.Flags().StringVar(&l.files.Directory, "config-dir", "", "The kubelet's drop-in directory; its files *.conf are merged in lexical order.")
	c.Flags().StringVar(&l.files.OS, "os", "linux", "The node's operating system, linux or windows, for the default thresholds.")
	c.Flags().StringVar(&l.capacity, "node-capacity", "", "The node's capacities, such as memory=16Gi,nodefs=100Gi; the names are "+lint.CapacityNames()+". An imagefs is a filesystem of its own.")
	c.Flags().StringVar(&l.node, "node", "", "Take the capacities of this node, and without a file its running kubelet's configuration, which needs get on nodes and nodes/proxy.")
	c.Flags().StringVar(&l.failOn, "fail-on", string(threshold.Warning), "Exit with 1 from this severity on: "+strings.Join(lint.Severities(), ", ")+".")
	c.MarkFlagsMutuallyExclusive("node", "node-capacity")
	l.cluster.AddFlags(c.Flags())
	addOutputFlag(c, &l.output)
	_ = c.MarkFlagDirname("config-dir")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(lint.Severities(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (l *linting) check() error {
	switch {
	case l.files.Config == "" && l.files.Directory == "" && l.node == "":
		return errors.New("name a kubelet's configuration: a file, --config-dir, or --node")
	case !slices.Contains(lint.Severities(), l.failOn):
		return fmt.Errorf("--fail-on %s: the severities are %s", l.failOn, strings.Join(lint.Severities(), ", "))
	}
	return checkOutput(l.output)
}

func (l *linting) run(ctx context.Context) error {
	var node lint.Node
	var running *lint.Config
	var err error
	switch {
	case l.capacity != "":
		if node, err = lint.ParseCapacity(l.capacity); err != nil {
			return fmt.Errorf("--node-capacity: %w", err)
		}
	case l.node != "":
		if node, running, err = l.ask(ctx); err != nil {
			return err
		}
	}
	config := running
	if config == nil {
		l.files.Read = l.read
		if config, err = lint.Load(l.files); err != nil {
			return err
		}
	}
	report := lint.Lint(config, node)
	if err := l.print(report); err != nil {
		return err
	}
	if report.Worst(threshold.Severity(l.failOn)) {
		return errFound
	}
	return nil
}

// read reads a file, or the standard input.
func (l *linting) read(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(l.streams.In)
	}
	return os.ReadFile(path)
}

// ask asks the API server for the node, and the node for its summary and, without a
// file, for its configuration.
func (l *linting) ask(ctx context.Context) (node lint.Node, running *lint.Config, err error) {
	config, err := l.cluster.ToRESTConfig()
	if err != nil {
		return node, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return node, nil, err
	}
	object, err := client.CoreV1().Nodes().Get(ctx, l.node, metav1.GetOptions{})
	if err != nil {
		return node, nil, fmt.Errorf("node %s: %w", l.node, err)
	}
	proxy := func(path string) ([]byte, error) {
		return client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", l.node, "proxy", path).DoRaw(ctx)
	}
	summary := new(statsapi.Summary)
	answer, err := proxy("stats/summary")
	if err == nil {
		err = json.Unmarshal(answer, summary)
	}
	if err != nil {
		warn(l.streams.ErrOut, "node %s: its summary: %v; the capacities of imagefs, inodes and process IDs are not known", l.node, err)
		summary = nil
	}
	node = lint.NodeOf(object, summary)
	if system := object.Status.NodeInfo.OperatingSystem; system != "" {
		l.files.OS = system
	}
	if l.files.Config != "" || l.files.Directory != "" {
		return node, nil, nil
	}
	if answer, err = proxy("configz"); err != nil {
		return node, nil, fmt.Errorf("node %s: its configuration: %w; it takes get on nodes/proxy, and enableDebuggingHandlers on", l.node, err)
	}
	running, err = lint.FromConfigz(l.node, answer)
	return node, running, err
}

func (l *linting) print(report *lint.Report) error {
	if l.output == outputJSON || l.output == outputYAML {
		return printObject(l.streams.Out, l.output, report)
	}
	out := l.streams.Out
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tSIGNAL\tVALUE\tAMOUNT\tORIGIN")
	for _, v := range report.Effective {
		// What nobody wrote and is no threshold is for -o wide.
		if v.Origin == lint.FromDefault && v.Signal == "" && v.Where == "" && l.output != outputWide {
			continue
		}
		origin := string(v.Origin)
		if v.Where != "" {
			origin += ": " + v.Where
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", v.Setting, orDash(v.Signal), v.Value, orDash(v.Amount), origin)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	tally := map[threshold.Severity]int{}
	for _, f := range report.Findings {
		tally[f.Severity]++
		fmt.Fprintf(out, "\n%s: %s", f.Severity, f.Name)
		if f.Where != "" {
			fmt.Fprintf(out, ", %s", f.Where)
		}
		fmt.Fprintf(out, "\n  %s\n", f.Problem)
		fmt.Fprintf(out, "  why: %s\n  fix: %s\n  see: %s\n", f.Reason, f.Fix, strings.Join(append(slices.Clone(f.Reports), f.Doc), " "))
	}
	fmt.Fprintln(out)
	if len(report.Unknown) > 0 {
		fmt.Fprintf(out, "Not everything could be looked at: the capacities of %s are not known; see --node-capacity.\n", strings.Join(report.Unknown, ", "))
	}
	var counts []string
	for _, severity := range []threshold.Severity{threshold.Error, threshold.Warning, threshold.Note} {
		text := fmt.Sprintf("%d %s", tally[severity], severity)
		if tally[severity] != 1 {
			text += "s"
		}
		counts = append(counts, text)
	}
	fmt.Fprintln(out, strings.Join(counts, ", "))
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
