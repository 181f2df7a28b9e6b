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

package simnode

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// LiveRecorded is Live under our manager, and returns its journal too.
func LiveRecorded(t *testing.T, spec Spec) (trace []string, records []byte) {
	var text bytes.Buffer
	trace = Live(t, spec, func(ctx context.Context, n *Node) (Pressure, lifecycle.PodAdmitHandler, error) {
		n.Journal = &text
		return Ours(ctx, n)
	})
	return trace, text.Bytes()
}

// Replayed is what came of taking the steps of a journal again.
type Replayed struct {
	// Passes that decided the same, and those of them that decided something.
	Passes, Decisions int
	// Faults are records that are damaged or decide something else.
	Faults []string
}

// Replay takes the step of each recorded pass again.
func Replay(records []byte) Replayed {
	var replayed Replayed
	fault := func(sequence uint64, format string, args ...any) {
		replayed.Faults = append(replayed.Faults, fmt.Sprintf("record %d: ", sequence)+fmt.Sprintf(format, args...))
	}
	var policy decide.Policy
	last := uint64(0)
	err := journal.Read(bytes.NewReader(records), func(r *journal.Record) (err error) {
		if r.Sequence != last+1 {
			fault(r.Sequence, "it follows record %d", last)
		}
		last = r.Sequence
		if r.Kind == journal.KindConfig {
			policy, err = r.Config.Policy()
			return err
		}
		if r.Kind == journal.KindOutcome || r.Abridged {
			return nil
		}
		if difference, err := r.Verify(policy); err != nil || difference != "" {
			fault(r.Sequence, "%v %s", err, difference)
			return nil
		}
		replayed.Passes++
		if r.Decision != nil {
			replayed.Decisions++
		}
		return nil
	}, func(fault *journal.LineError) error { return fault })
	if err != nil {
		fault(last, "%v", err)
	}
	return replayed
}
