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

// Package command has the commands of kubectl-eviction, a file each.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/term"
)

// Exit codes, for scripts; kubectl eviction --help lists them.
const (
	// exitFine: done, and nothing was found.
	exitFine = 0
	// exitFound: done, and what was looked for was found: a replay that differs, a
	// finding of lint, no record of the pod that was asked for.
	exitFound = 1
	// exitFailed: not done: wrong usage, input that cannot be read, no answer.
	exitFailed = 2
)

// errFound is returned by a command that did its work and whose answer is exitFound;
// what it found is printed already.
var errFound = errors.New("found")

// Streams are where a command reads and writes.
type Streams struct {
	genericiooptions.IOStreams
	// Color and Width are for output that goes to a terminal; no colour and 0 else.
	Color bool
	Width int
}

// Terminal returns the process's own streams. Colours are for terminals, and not
// where NO_COLOR is set.
func Terminal() Streams {
	s := Streams{IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}}
	if width, _, err := term.TerminalSize(os.Stdout); err == nil {
		s.Width = width
		s.Color = os.Getenv("NO_COLOR") == ""
	}
	return s
}

// Run runs a command line and returns its exit code.
func Run(arguments []string, streams Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks, the second ends: a read of the standard input cannot be asked.
	context.AfterFunc(ctx, stop)
	root := newRoot(streams)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFound
	}
	fmt.Fprintf(streams.ErrOut, "error: %v\n", err)
	return exitFailed
}

func newRoot(streams Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-eviction",
		Short: "Explain what the kubelet's eviction manager did, and what it would do",
		Long: `Explain what the kubelet's eviction manager did, and what it would do.

The kubelet of the project kubelet-eviction keeps a record of every pass of its
eviction manager that mattered. These commands read such a journal from a file or,
through the API server, from a node.

Exit status: 0 when all is well, 1 when a command found what it looks for (a replay
that differs, a finding of lint, no eviction of the pod that is
named), 2 when it could not do its
work.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl eviction"},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	for _, add := range commands {
		root.AddCommand(add(streams))
	}
	return root
}

// commands are the subcommands.
var commands = []func(Streams) *cobra.Command{
	newExplain,
	newLint,
	newPlot,
	newReplay,
	newSimulate,
	newTop,
}

// warn writes a line to the error stream.
func warn(to io.Writer, format string, args ...any) {
	fmt.Fprintf(to, "warning: "+format+"\n", args...)
}
