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

package scenarios

import (
	"testing"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// TestEveryRecordIsReplayed takes the step of each recorded pass again: from what
// the record holds, the same must be decided. The stories end as they are told
// although they are recorded.
func TestEveryRecordIsReplayed(t *testing.T) {
	withOurGates(t)
	sum := simnode.Replayed{}
	replay := func(t *testing.T, spec simnode.Spec) []string {
		trace, records := simnode.LiveRecorded(t, spec)
		replayed := simnode.Replay(records)
		for _, fault := range replayed.Faults {
			t.Error(fault)
		}
		sum.Passes, sum.Decisions = sum.Passes+replayed.Passes, sum.Decisions+replayed.Decisions
		return trace
	}
	stories(t, "testdata/ours", func(t *testing.T, spec simnode.Spec, _ string) string { return text(replay(t, spec)) })
	stories(t, "testdata/upstream", func(t *testing.T, spec simnode.Spec, expected string) string {
		replay(t, spec)
		return expected
	})
	t.Logf("%d passes replayed, %d of them with a decision", sum.Passes, sum.Decisions)
	if sum.Decisions < 100 {
		t.Errorf("only %d decisions were replayed", sum.Decisions)
	}
}
