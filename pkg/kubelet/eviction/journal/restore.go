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

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// RestoreWithin is how old a journal may be for a kubelet that starts to go on from
// it: longer than a restart or an upgrade takes, shorter than a node is away for
// repair. After it nobody knows what happened in between.
const RestoreWithin = 5 * time.Minute

// Restore returns the state after the last pass of the journal in a directory;
// false when there is none, or none that is recent at now. A file that cannot be
// read is an error, after which a kubelet starts as if there were none; lines that
// are damaged are passed over.
func Restore(directory string, now time.Time) (decide.State, time.Time, bool, error) {
	text, err := os.ReadFile(filepath.Join(directory, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return decide.State{}, time.Time{}, false, nil
	}
	if err != nil {
		return decide.State{}, time.Time{}, false, fmt.Errorf("reading the journal: %w", err)
	}
	var config, pass *Record
	var outcomes []*Record
	err = Read(bytes.NewReader(text), func(r *Record) error {
		switch r.Kind {
		case KindConfig:
			config = r
		case KindPass, KindHeartbeat:
			pass, outcomes = r.Keep(), nil
		case KindOutcome:
			outcomes = append(outcomes, r)
		}
		return nil
	}, func(*LineError) error { return nil })
	if err != nil || config == nil || pass == nil || pass.Time.After(now) || now.Sub(pass.Time) > RestoreWithin {
		return decide.State{}, time.Time{}, false, err
	}
	policy, err := config.Config.Policy()
	if err != nil {
		return decide.State{}, time.Time{}, false, fmt.Errorf("the configuration in the journal: %w", err)
	}
	state, _, err := pass.Step(policy)
	if err != nil {
		return decide.State{}, time.Time{}, false, fmt.Errorf("the last pass of the journal: %w", err)
	}
	for _, r := range outcomes {
		state = r.Outcome.apply(state, r.Time)
	}
	return state, pass.Time, true, nil
}

// apply tells a state what came about.
func (o *Outcome) apply(state decide.State, at time.Time) decide.State {
	switch {
	case o.Pod == nil:
	case o.Kind == OutcomeKilled:
		state.Ledger = state.Ledger.Killed(o.Pod.UID, at)
	case o.Kind == OutcomeKillFailed:
		state.Ledger = state.Ledger.Failed(o.Pod.UID, at)
	case o.Kind == OutcomeCleanedUp:
		state.Ledger = state.Ledger.CleanedUp(o.Pod.UID, at)
	}
	return state
}

// Adopt makes a restored state that of a kubelet which has just started: kills and
// reclaims that ran have ended with the old one, and are due again; thresholds are
// those of the new configuration.
func Adopt(state decide.State, policy decide.Policy, now time.Time) decide.State {
	var standings threshold.Standings
	for _, standing := range state.Standings {
		i := slices.IndexFunc(policy.Thresholds, func(t evictionapi.Threshold) bool { return threshold.Same(t, standing.Threshold) })
		if i >= 0 {
			standing.Threshold = policy.Thresholds[i]
			standings = append(standings, standing)
		}
	}
	state.Standings = standings
	// The first observation of the new kubelet counts, however old it is.
	state.ObservedAt = nil
	state.Reclaims = nil
	if !policy.ConcurrentKills {
		state.Ledger = decide.Ledger{}
		return state
	}
	state.Ledger = state.Ledger.Adopt(now)
	return state
}
