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
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats of -o; the empty one is for people.
const (
	outputJSON = "json"
	outputYAML = "yaml"
	outputWide = "wide"
)

var outputs = []string{outputJSON, outputYAML, outputWide}

func addOutputFlag(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", "", "One of "+strings.Join(outputs, ", ")+"; for people if it is not given.")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
}

func checkOutput(output string) error {
	if output != "" && !slices.Contains(outputs, output) {
		return fmt.Errorf("-o %s: the formats are %s", output, strings.Join(outputs, ", "))
	}
	return nil
}

// printObject writes a value as JSON or YAML.
func printObject(to io.Writer, format string, value any) error {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	if err != nil {
		return err
	}
	text := written.Bytes()
	if format == outputYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(to, strings.TrimRight(string(text), "\n"))
	return err
}

// progress shows how far long work has come, on a terminal.
type progress struct {
	streams Streams
	what    string
	shownAt time.Time
	shown   bool
}

// progressEvery is how often the line is written anew.
const progressEvery = 200 * time.Millisecond

func newProgress(streams Streams, what string) *progress {
	return &progress{streams: streams, what: what, shownAt: time.Now()}
}

func (p *progress) show(records int) {
	if now := time.Now(); p.streams.Width > 0 && now.Sub(p.shownAt) >= progressEvery {
		p.shownAt, p.shown = now, true
		fmt.Fprintf(p.streams.ErrOut, "\r\x1b[K%s: %d records", p.what, records)
	}
}

// done clears the line.
func (p *progress) done() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.streams.ErrOut, "\r\x1b[K")
	}
}
