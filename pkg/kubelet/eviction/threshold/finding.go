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

package threshold

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Severity says what a finding is worth.
type Severity string

// The severities. The kubelet does not start with an Error, or the node is of no
// use; with a Warning it runs, and something does not do what was meant; a Note is
// worth knowing.
const (
	Note    Severity = "note"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Rule is a sort of finding. The names are stable: scripts may go by them, and
// docs/lint.md has a section for each.
type Rule struct {
	Name string
	// Severity of its findings, if they do not say that they are worth less.
	Severity Severity
	// Reason says why it matters.
	Reason string
	// Reports are the public issues and pull requests that it comes from.
	Reports []string
}

// Finding is something in the eviction settings that is hardly meant.
type Finding struct {
	Rule
	// Signal that it is about; empty when it is about none.
	Signal evictionapi.Signal
	// Soft: it is about the signal's soft threshold.
	Soft bool
	// Problem says what is wrong, with its numbers, and Fix what to do.
	Problem, Fix string
}

// Subject is what findings are looked for in.
type Subject struct {
	// Thresholds as they are written, before those of the container filesystem
	// follow another's.
	Thresholds []evictionapi.Threshold
	// MaxPodGracePeriodSeconds is evictionMaxPodGracePeriod.
	MaxPodGracePeriodSeconds int64
	// Capacity of the signals, in their units, as far as it is known.
	Capacity map[evictionapi.Signal]int64
	// Layout of the filesystems; nil when it is not known.
	Layout *observe.Layout
}

// check is a rule with what it looks for.
type check struct {
	Rule
	find func(Subject) []Finding
}

// Findings returns everything that is found, in the order of the rules, and for
// each rule in that of the thresholds. A rule that needs a capacity or the layout,
// and does not have it, finds nothing.
func Findings(s Subject) []Finding {
	var all []Finding
	for _, c := range checks {
		for _, finding := range c.find(s) {
			severity := finding.Severity
			if finding.Rule = c.Rule; severity != "" {
				finding.Severity = severity
			}
			all = append(all, finding)
		}
	}
	return all
}

// Rules returns the rules that Findings goes by.
func Rules() []Rule {
	var rules []Rule
	for _, c := range checks {
		rules = append(rules, c.Rule)
	}
	return rules
}

// amount returns the threshold's amount; false when it is a percentage of an unknown
// capacity.
func (s Subject) amount(t evictionapi.Threshold) (int64, bool) {
	capacity, known := s.Capacity[t.Signal]
	if !known && t.Value.Quantity == nil {
		return 0, false
	}
	return Quantity(t, capacity).Value(), true
}

// guarded says whether a threshold of the signal can be met.
func (s Subject) guarded(signal evictionapi.Signal) bool {
	return slices.ContainsFunc(s.Thresholds, func(t evictionapi.Threshold) bool {
		return t.Signal == signal && t.Operator == evictionapi.OpLessThan
	})
}

// each calls find for every threshold of an amount that must be available.
func (s Subject) each(find func(evictionapi.Threshold) []Finding) []Finding {
	var all []Finding
	for _, t := range s.Thresholds {
		// allocatableMemory.available repeats what is found for memory.available.
		if t.Operator == evictionapi.OpLessThan && t.Signal != evictionapi.SignalAllocatableMemoryAvailable {
			for _, finding := range find(t) {
				finding.Signal, finding.Soft = t.Signal, !Hard(t)
				all = append(all, finding)
			}
		}
	}
	return all
}

// Describe writes a threshold as it is, and in absolute numbers where the capacity
// is known: "hard nodefs.available<10% (10Gi)".
func Describe(t evictionapi.Threshold, capacity int64, known bool) string {
	sign := "<"
	if t.Operator == observe.OpGreaterThan {
		sign, known = ">", false // a share of the time has no amount
	}
	text := fmt.Sprintf("%s %s%s%s", kind(Hard(t)), t.Signal, sign, valueText(t.Value))
	if known && t.Value.Quantity == nil {
		text += " (" + AmountText(t.Signal, Quantity(t, capacity).Value()) + ")"
	}
	if !Hard(t) {
		text += " for " + t.GracePeriod.String()
	}
	if t.MinReclaim != nil {
		text += ", reclaim " + valueText(*t.MinReclaim)
	}
	return text
}

// valueText writes a value as a person would.
func valueText(v evictionapi.ThresholdValue) string {
	if v.Quantity != nil {
		// String keeps what it wrote in the quantity, which a probe may be reading.
		own := v.Quantity.DeepCopy()
		return own.String()
	}
	// Six digits are what a float32 has.
	return fmt.Sprintf("%.6g%%", v.Percentage*100)
}

// AmountText writes an amount of a signal with three digits at least, so that it can
// be read; only bytes have units.
func AmountText(signal evictionapi.Signal, amount int64) string {
	traits, _ := observe.TraitsOf(signal)
	if traits.Format != resource.BinarySI {
		return fmt.Sprint(amount)
	}
	for _, u := range []struct {
		name string
		size int64
	}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if amount >= u.size {
			return fmt.Sprintf("%.4g%s", float64(amount)/float64(u.size), u.name)
		}
	}
	return fmt.Sprint(amount)
}
