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

// Package threshold knows what a threshold is: how it is written in the
// kubelet's configuration, when it is met, since when, and which node condition
// it raises. It holds values only; nothing in it reads a clock, a file or a
// feature gate.
package threshold

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Settings are the kubelet's eviction settings as they are written in its
// configuration: signal names to texts.
type Settings struct {
	// Hard and Soft give the value below which a signal is short: a quantity
	// above 0, or a percentage of the capacity from 0 to 100. "0%" and "100%"
	// leave the signal unguarded.
	Hard, Soft map[string]string
	// SoftGracePeriod gives how long a soft threshold must be met, as a
	// duration of 0 or more. Every soft threshold needs one.
	SoftGracePeriod map[string]string
	// MinimumReclaim gives what must be available above the threshold before
	// the shortage counts as over: a quantity of 0 or more, or a percentage
	// above 0.
	MinimumReclaim map[string]string
	// GuardAllocatable makes each hard threshold on memory.available watch the
	// pods' own cgroup too.
	GuardAllocatable bool
	// PressureSignals allows the signals of EvictionPressureSignals, which upstream
	// does not know.
	PressureSignals bool
}

// Names of the configuration's maps.
const (
	EvictionHard            = "evictionHard"
	EvictionSoft            = "evictionSoft"
	EvictionSoftGracePeriod = "evictionSoftGracePeriod"
	EvictionMinimumReclaim  = "evictionMinimumReclaim"
)

// Parse returns the thresholds of the settings: hard ones, soft ones, then
// those on allocatable memory, each kind in the order of the signals' table.
// The error holds a Fault for everything that was found, each with the map, the
// signal, the text and what is allowed; Faults takes them apart.
func Parse(s Settings) ([]evictionapi.Threshold, error) {
	hard, faults := parseThresholds(s, EvictionHard, s.Hard)
	soft, more := parseThresholds(s, EvictionSoft, s.Soft)
	faults = append(faults, more...)
	graces, more := parseAll(s, EvictionSoftGracePeriod, s.SoftGracePeriod, parseGrace)
	faults = append(faults, more...)
	reclaims, more := parseAll(s, EvictionMinimumReclaim, s.MinimumReclaim, parseMinimumReclaim)
	faults = append(faults, more...)
	for i := range soft {
		signal := string(soft[i].Signal)
		if _, written := s.SoftGracePeriod[signal]; !written {
			faults = append(faults, &Fault{Kind: NoGrace, Map: EvictionSoft, Signal: signal, Text: s.Soft[signal], Problem: "no grace period", Allowed: "a soft threshold with a duration in " + EvictionSoftGracePeriod})
		}
		soft[i].GracePeriod = graces[soft[i].Signal]
	}
	if len(faults) > 0 {
		return nil, joined(faults)
	}

	all := append(append([]evictionapi.Threshold{}, hard...), soft...)
	for i := range all {
		if reclaim, given := reclaims[all[i].Signal]; given {
			all[i].MinReclaim = &reclaim
		}
	}
	if s.GuardAllocatable {
		all = WithAllocatable(all)
	}
	return all, nil
}

// WithAllocatable returns the thresholds, followed by one on
// allocatableMemory.available for each hard one on memory.available.
func WithAllocatable(thresholds []evictionapi.Threshold) []evictionapi.Threshold {
	all := slices.Clone(thresholds)
	for _, t := range thresholds {
		if t.Signal == evictionapi.SignalMemoryAvailable && Hard(t) {
			t.Signal = evictionapi.SignalAllocatableMemoryAvailable
			all = append(all, t)
		}
	}
	return all
}

// Hard says whether a threshold is acted upon as soon as it is met.
func Hard(t evictionapi.Threshold) bool {
	return t.GracePeriod == 0
}

// parseThresholds parses evictionHard or evictionSoft. The thresholds that are
// good are returned beside the faults of the others.
func parseThresholds(s Settings, name string, texts map[string]string) ([]evictionapi.Threshold, []*Fault) {
	values, faults := parseAll(s, name, texts, parseValue)
	var thresholds []evictionapi.Threshold
	for _, signal := range observe.Signals() {
		if value, given := values[signal]; given && value != nil {
			traits, _ := observe.TraitsOf(signal)
			thresholds = append(thresholds, evictionapi.Threshold{
				Signal:   signal,
				Operator: traits.Operator(),
				Value:    *value,
			})
		}
	}
	return thresholds, faults
}

// parser makes a value of a text, and says what is allowed. The error says what is
// wrong with the text.
type parser[T any] func(text string, u unit) (value T, allowed string, err error)

// parseAll parses one map of the configuration. Faults are in the order of the
// keys, so that the same configuration always gives the same error.
func parseAll[T any](s Settings, name string, texts map[string]string, parse parser[T]) (map[evictionapi.Signal]T, []*Fault) {
	values := make(map[evictionapi.Signal]T, len(texts))
	var faults []*Fault
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		fault := &Fault{Kind: BadValue, Map: name, Signal: key, Text: texts[key]}
		traits, known := observe.TraitsOf(evictionapi.Signal(key))
		if !known || traits.Extra && !s.PressureSignals {
			fault.Kind, fault.Problem, fault.Allowed = UnknownSignal, "unsupported eviction signal", s.signalNames()
			if known {
				fault.Problem += " while EvictionPressureSignals is off, or one of EvictionConcurrentKills, EvictionEvidence and EvictionPromptWake, which it needs"
			}
			faults = append(faults, fault)
			continue
		}
		value, allowed, err := parse(texts[key], unitOf(traits))
		if err != nil {
			fault.Problem, fault.Allowed = err.Error(), allowed
			faults = append(faults, fault)
			continue
		}
		values[traits.Signal] = value
	}
	return values, faults
}

func (s Settings) signalNames() string {
	var names []string
	for _, signal := range observe.Signals() {
		if traits, _ := observe.TraitsOf(signal); !traits.Extra || s.PressureSignals {
			names = append(names, string(signal))
		}
	}
	return strings.Join(names, ", ")
}

// parseValue parses what a signal must not fall below; nil when the text
// leaves the signal unguarded.
func parseValue(text string, u unit) (value *evictionapi.ThresholdValue, allowed string, err error) {
	allowed = u.or(", above 0, or ") + "a percentage from 0% to 100%"
	if text == "0%" || text == "100%" {
		return nil, allowed, nil
	}
	if strings.HasSuffix(text, "%") {
		fraction, err := Percentage(text)
		if err == nil && (fraction < 0 || fraction > 1) {
			err = errors.New("not between 0% and 100%")
		}
		return &evictionapi.ThresholdValue{Percentage: fraction}, allowed, err
	}
	quantity, err := u.parse(text)
	if err == nil && quantity.Sign() <= 0 {
		err = errors.New("not above 0")
	}
	return &evictionapi.ThresholdValue{Quantity: &quantity}, allowed, err
}

func parseMinimumReclaim(text string, u unit) (value evictionapi.ThresholdValue, allowed string, err error) {
	allowed = u.or(", 0 or more, or ") + "a percentage above 0%"
	if strings.HasSuffix(text, "%") {
		fraction, err := Percentage(text)
		if err == nil && fraction <= 0 {
			err = errors.New("not above 0%")
		}
		return evictionapi.ThresholdValue{Percentage: fraction}, allowed, err
	}
	quantity, err := u.parse(text)
	if err == nil && quantity.Sign() < 0 {
		err = errors.New("negative")
	}
	return evictionapi.ThresholdValue{Quantity: &quantity}, allowed, err
}

func parseGrace(text string, _ unit) (grace time.Duration, allowed string, err error) {
	grace, err = time.ParseDuration(text)
	switch {
	case err != nil:
		err = errors.New("not a duration")
	case grace < 0:
		err = errors.New("negative")
	case grace == 0 && strings.HasPrefix(text, "-"):
		err = errNegativeZero
	}
	return grace, "a duration of 0 or more, such as 1m30s", err
}
