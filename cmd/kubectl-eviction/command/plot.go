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
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/timeline"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// plot draws a journal.
type plot struct {
	source   *source
	streams  Streams
	output   string
	from, to string
	signals  []string
}

func newPlot(streams Streams) *cobra.Command {
	p := &plot{source: newSource(streams), streams: streams}
	c := &cobra.Command{
		Use:   "plot [JOURNAL] -o timeline.svg|timeline.html",
		Short: "Draw what was available against the thresholds, and what was done about it",
		Long: `Draw a journal: what was available of each signal against its thresholds over time,
the node's conditions, reclaims with what they freed, kills from the decision to the
clean-up, releases, and the passes by what woke them. Times of which the journal does
not tell are hatched.

A .svg file is the picture alone. A .html file has it with a table of all events;
either needs no network, and follows the reader's light or dark colours. Pointing at
something tells more of it. What was available is drawn as the passes saw it.

A journal of any length is drawn in the memory of a short one: each pixel has the
lowest and the highest of its time, and events that lie too close together are
counted. Use --from and --to to look closer.

Exit status: 0 when the drawing is written, 1 when the journal tells of nothing in
the time that was asked for (nothing is written), 2 when it could not be done.`,
		Example: `  kubectl eviction plot eviction.jsonl -o timeline.html
  kubectl eviction plot --node worker-1 -o timeline.svg --signal memory.available
  kubectl eviction plot eviction.jsonl -o timeline.html --from 2026-03-01T03:10:00Z --to 2026-03-01T03:20:00Z`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := p.source.take(arguments); err != nil {
				return err
			}
			return p.run(c.Context())
		},
	}
	p.source.addFlags(c)
	c.Flags().StringVarP(&p.output, "output", "o", "", "The file to write: .svg is the picture, .html has a table of events too; - writes the picture to the standard output.")
	c.Flags().StringVar(&p.from, "from", "", "Draw from this time on: such as 2026-03-01T03:10:00Z, without a zone in UTC, or a span before now such as 10m.")
	c.Flags().StringVar(&p.to, "to", "", "Draw up to this time.")
	c.Flags().StringSliceVar(&p.signals, "signal", nil, "Draw these signals alone, such as memory.available; those that have a threshold or were near one if it is not given.")
	_ = c.MarkFlagFilename("output", "svg", "html")
	_ = c.RegisterFlagCompletionFunc("signal", cobra.FixedCompletions(signalNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func signalNames() []string {
	var names []string
	for _, signal := range observe.Signals() {
		names = append(names, string(signal))
	}
	return names
}

func (p *plot) run(ctx context.Context) error {
	extension := strings.ToLower(filepath.Ext(p.output))
	switch {
	case p.output == "":
		return errors.New("name the file to write: -o timeline.svg or -o timeline.html")
	case p.output != "-" && extension != ".svg" && extension != ".html":
		return fmt.Errorf("-o %s: the name must end in .svg or .html", p.output)
	}
	window, err := p.window()
	if err != nil {
		return err
	}
	var only []evictionapi.Signal
	for _, name := range p.signals {
		if !slices.Contains(signalNames(), name) {
			return fmt.Errorf("--signal %s: the signals are %s", name, strings.Join(signalNames(), ", "))
		}
		only = append(only, evictionapi.Signal(name))
	}
	collector, err := p.collect(ctx, window, only)
	if err != nil {
		return err
	}
	drawn := collector.Timeline()
	if drawn == nil {
		first, last := collector.Span()
		fmt.Fprintf(p.streams.Out, "%s: no record lies in that time; the journal tells of %s to %s\n",
			p.source, first.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
		return errFound
	}
	if len(only) > 0 && len(drawn.Signals) == 0 {
		return fmt.Errorf("%s: nothing was observed of %s", p.source, strings.Join(p.signals, ", "))
	}
	// All of it or nothing: a drawing that is cut off does not open.
	var text bytes.Buffer
	draw := drawn.SVG
	if extension == ".html" {
		draw = drawn.HTML
	}
	if err := draw(&text); err != nil {
		return err
	}
	if p.output == "-" {
		_, err := text.WriteTo(p.streams.Out)
		return err
	}
	if err := os.WriteFile(p.output, text.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(p.streams.Out, "%s: %d records, %d kills, %d reclaims\n", p.output, drawn.Records, drawn.Kills.Count(), drawn.Reclaims.Count())
	return nil
}

func (p *plot) collect(ctx context.Context, window timeline.Window, only []evictionapi.Signal) (*timeline.Collector, error) {
	collector := timeline.NewCollector(window, only)
	progress := newProgress(p.streams, p.source.String())
	defer progress.done()
	records := 0
	err := p.source.read(ctx, func(r *journal.Record) error {
		records++
		progress.show(records)
		return collector.Add(r)
	})
	return collector, err
}

func (p *plot) window() (timeline.Window, error) {
	var w timeline.Window
	var err error
	if w.From, err = timeOf("--from", p.from); err != nil {
		return w, err
	}
	if w.To, err = timeOf("--to", p.to); err != nil {
		return w, err
	}
	if !w.From.IsZero() && !w.To.IsZero() && w.To.Before(w.From) {
		return w, fmt.Errorf("--to %s lies before --from %s", p.to, p.from)
	}
	return w, nil
}

// zoneless are how a time can be given without a zone; it is UTC, as the drawing is.
var zoneless = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range zoneless {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	at, err := parseTime(text, time.Now())
	if err != nil {
		return at, fmt.Errorf("%s: %w", flag, err)
	}
	return at, nil
}
