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
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// source is where a journal is read from: a file, a directory of files, the
// standard input, or a node.
type source struct {
	streams Streams
	config  *genericclioptions.ConfigFlags
	path    string
	node    string
	// lastOnly leaves out all files but the one that is written.
	lastOnly bool
}

func newSource(streams Streams) *source {
	return &source{streams: streams, config: genericclioptions.NewConfigFlags(true)}
}

// addFlags adds -f and --node, and the flags that say which cluster.
func (s *source) addFlags(c *cobra.Command) {
	c.Flags().StringVarP(&s.path, "filename", "f", "", "The journal: a file, a directory of journal files, or - for the standard input.")
	c.Flags().StringVar(&s.node, "node", "", "Read the journal of this node through the API server, which needs get on nodes/proxy.")
	s.config.AddFlags(c.Flags())
	c.MarkFlagsMutuallyExclusive("filename", "node")
	_ = c.MarkFlagFilename("filename", "jsonl")
}

// take takes the journal from the arguments, of which there is one at most, or else
// from the flags.
func (s *source) take(arguments []string) error {
	if len(arguments) == 1 {
		if s.path != "" || s.node != "" {
			return errors.New("name one journal: as an argument, with -f or with --node")
		}
		s.path = arguments[0]
	}
	return s.check()
}

// check says whether exactly one place is named.
func (s *source) check() error {
	if s.path == "" && s.node == "" {
		return errors.New("name a journal: -f FILE, -f - for the standard input, or --node NODE")
	}
	return nil
}

func (s *source) String() string {
	switch {
	case s.node != "":
		return "node " + s.node
	case s.path == "-":
		return "standard input"
	}
	return s.path
}

// part is one file of a journal.
type part struct {
	name string
	open func(context.Context) (io.ReadCloser, error)
}

// journalFile matches the names of a journal's files; the older ones carry their time.
var journalFile = regexp.MustCompile(`eviction(-[0-9T.-]+)?\.jsonl`)

// inOrder sorts the files of a journal: those with a time first, oldest first.
func inOrder(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		current := func(name string) int { return strings.Count(filepath.Base(name), journal.FileName) }
		if by := current(a) - current(b); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(names)
}

// parts lists the files, the oldest first.
func (s *source) parts(ctx context.Context) ([]part, error) {
	parts, err := s.allParts(ctx)
	if err == nil && s.lastOnly {
		parts = parts[len(parts)-1:]
	}
	return parts, err
}

func (s *source) allParts(ctx context.Context) ([]part, error) {
	if s.node != "" {
		return s.partsOfNode(ctx)
	}
	if s.path == "-" {
		return []part{{"standard input", func(context.Context) (io.ReadCloser, error) { return io.NopCloser(s.streams.In), nil }}}, nil
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	paths := []string{s.path}
	if info.IsDir() {
		all, err := filepath.Glob(filepath.Join(s.path, "eviction*.jsonl"))
		if err != nil {
			return nil, err
		}
		if paths = inOrder(all); len(paths) == 0 {
			return nil, fmt.Errorf("%s: no journal in it; its files are called eviction*.jsonl", s.path)
		}
	}
	var parts []part
	for _, path := range paths {
		parts = append(parts, part{path, func(context.Context) (io.ReadCloser, error) { return os.Open(path) }})
	}
	return parts, nil
}

// nodeFolder is where the kubelet keeps the journal below its log directory.
const nodeFolder = "kubelet-eviction"

func (s *source) partsOfNode(ctx context.Context) ([]part, error) {
	config, err := s.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, name string) (io.ReadCloser, error) {
		// Not AbsPath: that takes off the slash at the end, without which the kubelet
		// answers with a redirection and not with the folder.
		uri := "/api/v1/nodes/" + url.PathEscape(s.node) + "/proxy/logs/" + nodeFolder + "/" + name
		return client.CoreV1().RESTClient().Get().RequestURI(uri).Stream(ctx)
	}
	listing, err := get(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("node %s: listing the journal: %w; the kubelet must be one with the patch eviction-journal, and have enableSystemLogHandler on", s.node, err)
	}
	defer listing.Close()
	page, err := io.ReadAll(io.LimitReader(listing, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("node %s: listing the journal: %w", s.node, err)
	}
	names := inOrder(journalFile.FindAllString(string(page), -1))
	if len(names) == 0 {
		return nil, fmt.Errorf("node %s: its log directory %s has no journal", s.node, nodeFolder)
	}
	var parts []part
	for _, name := range names {
		parts = append(parts, part{name, func(ctx context.Context) (io.ReadCloser, error) { return get(ctx, name) }})
	}
	return parts, nil
}

// read calls each for every record, the oldest first. Damaged lines are told of and
// passed over; a journal of a later version, or no journal at all, is an error.
func (s *source) read(ctx context.Context, each func(*journal.Record) error) error {
	parts, err := s.parts(ctx)
	if err != nil {
		return err
	}
	records := 0
	for _, p := range parts {
		n, err := s.readPart(ctx, p, each)
		if records += n; err != nil {
			return err
		}
	}
	if records == 0 {
		return fmt.Errorf("%s: the journal has no records", s)
	}
	return nil
}

// shownFaults is how many damaged lines of a file are told of one by one.
const shownFaults = 5

func (s *source) readPart(ctx context.Context, p part, each func(*journal.Record) error) (records int, err error) {
	from, err := p.open(ctx)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	faults := 0
	err = journal.Read(from, func(r *journal.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		records++
		return each(r)
	}, func(fault *journal.LineError) error {
		var later *journal.VersionError
		switch {
		case errors.Is(fault, journal.ErrTruncated):
			return nil // it is being written
		case errors.As(fault, &later), records == 0 && fault.Line <= shownFaults && errors.Is(fault, journal.ErrForeign):
			return fmt.Errorf("%s: %w", p.name, fault)
		}
		if faults++; faults <= shownFaults {
			warn(s.streams.ErrOut, "%s: %v; the line is passed over", p.name, fault)
		}
		return nil
	})
	switch {
	case err != nil:
		return records, err
	case records == 0 && faults > 0:
		return records, fmt.Errorf("%s: none of its lines is a record of an eviction journal", p.name)
	case faults > shownFaults:
		warn(s.streams.ErrOut, "%s: %d damaged lines were passed over", p.name, faults)
	}
	return records, nil
}
