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
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// replay takes the steps of a journal again.
type replay struct {
	source  *source
	streams Streams
	config  string
	gates   map[string]string
	output  string
}

func newReplay(streams Streams) *cobra.Command {
	r := &replay{source: newSource(streams), streams: streams}
	c := &cobra.Command{
		Use:   "replay [JOURNAL]",
		Short: "Take every recorded step again, unchanged or with another configuration",
		Long: `Take every recorded step again.

Unchanged, each step must decide what it is recorded to have decided; a difference is
a fault of this program, of the kubelet or of the journal, and the exit status is 1.

With --config or --feature-gates the steps are taken with the eviction settings of a
kubelet's configuration file or with other gates, and what would have been decided
otherwise is printed. The node's later numbers are what they were: a pod that is
evicted only here goes on living in them, so that its further evictions are not shown,
and what it holds is counted as available.`,
		Example: `  kubectl eviction replay eviction.jsonl
  kubectl eviction replay eviction.jsonl --config kubelet.yaml
  kubectl eviction replay --node worker-1 --feature-gates EvictionEvidence=false`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := r.source.take(arguments); err != nil {
				return err
			}
			if err := checkOutput(r.output); err != nil {
				return err
			}
			if r.config == "" && len(r.gates) == 0 {
				return r.unchanged(c.Context())
			}
			return r.changed(c.Context())
		},
	}
	r.source.addFlags(c)
	c.Flags().StringVar(&r.config, "config", "", "A KubeletConfiguration file, whose eviction settings are taken.")
	c.Flags().StringToStringVar(&r.gates, "feature-gates", nil, "Gates to replay with, such as EvictionEvidence=false; the others are as recorded.")
	addOutputFlag(c, &r.output)
	_ = c.MarkFlagFilename("config", "yaml", "yml", "json")
	return c
}

// tally is what came of taking the steps again.
type tally struct {
	Records int `json:"records"`
	// Steps that were taken again, Decisions those of them that decided something.
	Steps     int `json:"steps"`
	Decisions int `json:"decisions"`
	Outcomes  int `json:"outcomes"`
	// Abridged records do not hold what they were decided from.
	Abridged int `json:"abridged"`
	// Dropped records could not be written.
	Dropped uint64 `json:"dropped"`
	// Damaged lines were passed over.
	Damaged   int  `json:"damaged"`
	Truncated bool `json:"truncated"`
	// Differing steps decide something else than is recorded.
	Differing   int          `json:"differing"`
	Differences []difference `json:"differences,omitempty"`
}

// difference is a step that decides something else.
type difference struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Sequence uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	What     string    `json:"what"`
}

// manyRecords are enough for a rate that means something.
const manyRecords = 100_000

// shownDifferences is how many are kept; a journal of another program would have
// millions.
const shownDifferences = 20

// gcPercent keeps the heap, of a few mebibytes, below a hundred.
const gcPercent = 400

// batchLines is how many lines a worker takes at once: enough that handing them
// over costs nothing, and few enough that memory stays flat.
const batchLines = 512

// batch is some lines of a file with the policy that they were decided by.
type batch struct {
	file   string
	policy *decide.Policy
	text   []byte
	ends   []int
	first  []int
	last   bool // the last line has no end
	result chan batchResult
}

type batchResult struct {
	tally
	err error
}

// unchanged takes each step again and looks for differences, several at a time:
// every record holds all that its step was given.
func (r *replay) unchanged(ctx context.Context) error {
	parts, err := r.source.parts(ctx)
	if err != nil {
		return err
	}
	// A step leaves much garbage and nothing else; with the default the collector
	// takes half of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	started := time.Now()
	progress := newProgress(r.streams, r.source.String())
	defer progress.done()
	var sum tally
	for _, p := range parts {
		if err := r.verify(ctx, p, &sum, progress); err != nil {
			return err
		}
	}
	progress.done()
	if sum.Records == 0 {
		return fmt.Errorf("%s: the journal has no records", r.source)
	}
	if err := r.print(&sum, time.Since(started)); err != nil {
		return err
	}
	if sum.Differing > 0 {
		return errFound
	}
	return nil
}

// verify replays one file.
func (r *replay) verify(ctx context.Context, p part, sum *tally, progress *progress) error {
	from, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan *batch, workers), make(chan *batch, 4*workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			var decoder journal.Decoder
			for b := range work {
				b.result <- b.verify(&decoder)
			}
		})
	}
	split := make(chan error, 1)
	go func() {
		err := splitBatches(from, p.name, func(b *batch) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case order <- b:
			}
			select {
			case <-ctx.Done():
				b.result <- batchResult{err: ctx.Err()}
				return ctx.Err()
			case work <- b:
			}
			return nil
		})
		close(work)
		close(order)
		split <- err
	}()
	for b := range order {
		result := <-b.result
		if err == nil {
			if err = result.err; err == nil && sum.Records == 0 && result.Records == 0 && result.Damaged > 0 {
				err = fmt.Errorf("%s: its first %d lines are no records of an eviction journal", p.name, result.Damaged)
			}
			if err != nil {
				cancel()
			}
		}
		batches.Put(b)
		sum.add(result.tally)
		progress.show(sum.Records)
	}
	group.Wait()
	if splitErr := <-split; err == nil {
		err = splitErr
	}
	return err
}

// batches are used again and again: half a mebibyte each.
var batches = sync.Pool{New: func() any { return &batch{result: make(chan batchResult, 1)} }}

// splitBatches cuts a journal into batches; one ends where the configuration changes.
func splitBatches(from io.Reader, name string, each func(*batch) error) error {
	lines := journal.NewLines(from)
	var policy *decide.Policy
	empty := func() *batch {
		b := batches.Get().(*batch)
		b.file, b.policy, b.last = name, policy, false
		b.text, b.ends, b.first = b.text[:0], b.ends[:0], b.first[:0]
		return b
	}
	b := empty()
	flush := func() error {
		if len(b.ends) == 0 {
			return nil
		}
		full := b
		b = empty()
		return each(full)
	}
	for {
		text, number, whole, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return flush()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if isConfig(text) {
			if record, err := journal.Decode(text); err == nil {
				read, err := record.Config.Policy()
				if err != nil {
					return fmt.Errorf("%s: line %d: %w", name, number, err)
				}
				if err := flush(); err != nil {
					return err
				}
				policy = &read
				b = empty()
			}
		}
		b.text = append(b.text, text...)
		b.ends = append(b.ends, len(b.text))
		b.first = append(b.first, number)
		b.last = !whole
		if len(b.ends) == batchLines || len(b.text) > 1<<20 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// isConfig says whether a line looks like a record of the configuration; the kind
// stands near its beginning.
func isConfig(line []byte) bool {
	return bytes.Contains(line[:min(len(line), 200)], []byte(`"kind":"config"`))
}

// verify takes the steps of a batch again.
func (b *batch) verify(decoder *journal.Decoder) batchResult {
	var result batchResult
	begin := 0
	for i, end := range b.ends {
		line := b.text[begin:end]
		begin = end
		record, err := decoder.Decode(line)
		var later *journal.VersionError
		switch {
		case err != nil && b.last && i == len(b.ends)-1:
			result.Truncated = true
			continue
		case errors.As(err, &later):
			result.err = fmt.Errorf("%s: line %d: %w", b.file, b.first[i], err)
			return result
		case err != nil:
			result.Damaged++
			continue
		}
		result.Records++
		result.Dropped += record.Dropped
		switch {
		case record.Kind == journal.KindConfig:
			continue
		case record.Kind == journal.KindOutcome:
			result.Outcomes++
			continue
		case record.Abridged:
			result.Abridged++
			continue
		case b.policy == nil:
			result.err = fmt.Errorf("%s: line %d: no record of the configuration comes before this pass; the beginning of the file is missing", b.file, b.first[i])
			return result
		}
		what, err := record.Verify(*b.policy)
		if err != nil {
			result.err = fmt.Errorf("%s: line %d: %w", b.file, b.first[i], err)
			return result
		}
		result.Steps++
		if record.Decision != nil {
			result.Decisions++
		}
		if what != "" {
			result.Differing++
			if len(result.Differences) < shownDifferences {
				result.Differences = append(result.Differences, difference{b.file, b.first[i], record.Sequence, record.Time, what})
			}
		}
	}
	return result
}

func (t *tally) add(other tally) {
	t.Records += other.Records
	t.Steps += other.Steps
	t.Decisions += other.Decisions
	t.Outcomes += other.Outcomes
	t.Abridged += other.Abridged
	t.Dropped += other.Dropped
	t.Damaged += other.Damaged
	t.Truncated = t.Truncated || other.Truncated
	t.Differing += other.Differing
	t.Differences = append(t.Differences, other.Differences[:min(len(other.Differences), shownDifferences-min(len(t.Differences), shownDifferences))]...)
}

// print tells what came of it; the rate goes to the error stream, so that the same
// journal always gives the same output.
func (r *replay) print(t *tally, took time.Duration) error {
	if r.output == outputJSON || r.output == outputYAML {
		return printObject(r.streams.Out, r.output, t)
	}
	out := r.streams.Out
	for _, d := range t.Differences {
		fmt.Fprintf(out, "%s:%d: record %d of %s: %s\n", d.File, d.Line, d.Sequence, d.Time.Format(time.RFC3339Nano), d.What)
	}
	fmt.Fprintf(out, "%d records: %d steps taken again, %d of them with a decision, %d outcomes\n", t.Records, t.Steps, t.Decisions, t.Outcomes)
	var notes []string
	for _, note := range []struct {
		n    uint64
		text string
	}{
		{uint64(t.Abridged), "abridged records were left out"},
		{t.Dropped, "records are missing, the node could not write them"},
		{uint64(t.Damaged), "damaged lines were passed over"},
	} {
		if note.n > 0 {
			notes = append(notes, fmt.Sprintf("%d %s", note.n, note.text))
		}
	}
	if t.Truncated {
		notes = append(notes, "the last line is cut off")
	}
	if len(notes) > 0 {
		fmt.Fprintln(out, strings.Join(notes, "; "))
	}
	if t.Differing == 0 {
		fmt.Fprintln(out, "every step decided what is recorded")
	} else {
		fmt.Fprintf(out, "%d steps decided something else than is recorded\n", t.Differing)
	}
	if t.Records >= manyRecords {
		fmt.Fprintf(r.streams.ErrOut, "%.0f records a second\n", float64(t.Records)/took.Seconds())
	}
	return nil
}
