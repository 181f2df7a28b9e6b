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
	"fmt"
	"slices"
	"strings"

	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/explain"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// changed takes the steps one after the other with another configuration.
func (r *replay) changed(ctx context.Context) error {
	change, err := r.change(ctx)
	if err != nil {
		return err
	}
	var whatIf explain.WhatIf
	whatIf.Change = change
	progress := newProgress(r.streams, r.source.String())
	defer progress.done()
	records := 0
	err = r.source.read(ctx, func(record *journal.Record) error {
		records++
		progress.show(records)
		return whatIf.See(record)
	})
	progress.done()
	if err != nil {
		return err
	}
	if r.output == outputJSON || r.output == outputYAML {
		return printObject(r.streams.Out, r.output, whatIf.Result())
	}
	result := whatIf.Result()
	out := r.streams.Out
	if len(result.Differences) > 0 {
		t := table(out)
		fmt.Fprintln(t, "TIME\tRECORDED\tWITH THE CHANGE")
		for _, d := range result.Differences {
			fmt.Fprintf(t, "%s\t%s\t%s\n", stamp(d.Time), orNothing(d.Recorded), orNothing(d.Changed))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d steps: %d would have been otherwise\n", result.Steps, result.Different)
	fmt.Fprintf(out, "recorded: %s\nwith the change: %s\n", result.Recorded, result.Changed)
	if result.Unknown > 0 {
		fmt.Fprintf(out, "%d steps would have looked for victims among pods that the journal does not hold, since nothing was short then; whom they would have taken is not known\n", result.Unknown)
	}
	return nil
}

func orNothing(what []string) string {
	if len(what) == 0 {
		return "-"
	}
	return strings.Join(what, ", ")
}

// change returns what makes another policy of a recorded one.
func (r *replay) change(ctx context.Context) (func(decide.Policy) (decide.Policy, error), error) {
	gates := map[string]bool{}
	for name, value := range r.gates {
		if !slices.Contains(journal.Gates(), name) {
			return nil, fmt.Errorf("--feature-gates: no step depends on %s; those that one depends on are %s", name, strings.Join(journal.Gates(), ", "))
		}
		if value != "true" && value != "false" {
			return nil, fmt.Errorf("--feature-gates: %s=%s: true or false belongs there", name, value)
		}
		gates[name] = value == "true"
	}
	if r.config == "" {
		return func(policy decide.Policy) (decide.Policy, error) { return journal.WithGates(policy, gates), nil }, nil
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, r.config)
	if err != nil {
		return nil, err
	}
	kubelet, err := loader.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	thresholds, err := eviction.ParseThresholdConfig(kubelet.EnforceNodeAllocatable, kubelet.EvictionHard, kubelet.EvictionSoft, kubelet.EvictionSoftGracePeriod, kubelet.EvictionMinimumReclaim)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.config, err)
	}
	return func(policy decide.Policy) (decide.Policy, error) {
		policy = journal.WithGates(policy, gates)
		// Those that the node's layout overrides are no news here: lint tells of them.
		policy.Thresholds, _ = threshold.WithContainerFs(slices.Clone(thresholds), observe.Layout(policy.Layout))
		policy.PressureTransitionPeriod = kubelet.EvictionPressureTransitionPeriod.Duration
		policy.MaxPodGracePeriodSeconds = int64(kubelet.EvictionMaxPodGracePeriod)
		policy.LocalStorageLimits = kubelet.LocalStorageCapacityIsolation
		return policy, nil
	}, nil
}
