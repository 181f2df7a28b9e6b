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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
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
}

// Names of the configuration's maps, for messages.
const (
	evictionHard            = "evictionHard"
	evictionSoft            = "evictionSoft"
	evictionSoftGracePeriod = "evictionSoftGracePeriod"
	evictionMinimumReclaim  = "evictionMinimumReclaim"
)

// Parse returns the thresholds of the settings: hard ones, soft ones, then
// those on allocatable memory, each kind in the order of the signals' table.
// The error holds every fault that was found, each with the map, the signal
// and the text.
func Parse(s Settings) ([]evictionapi.Threshold, error) {
	var faults []error
	collect := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	hard, err := parseThresholds(evictionHard, s.Hard)
	collect(err)
	soft, err := parseThresholds(evictionSoft, s.Soft)
	collect(err)
	graces, err := parseAll(evictionSoftGracePeriod, s.SoftGracePeriod, parseGrace)
	collect(err)
	reclaims, err := parseAll(evictionMinimumReclaim, s.MinimumReclaim, parseMinimumReclaim)
	collect(err)
	for i := range soft {
		grace, given := graces[soft[i].Signal]
		if _, written := s.SoftGracePeriod[string(soft[i].Signal)]; !given && !written {
			collect(fmt.Errorf("%s: %s has no grace period; set one in %s", evictionSoft, soft[i].Signal, evictionSoftGracePeriod))
		}
		soft[i].GracePeriod = grace
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
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

func parseThresholds(name string, texts map[string]string) ([]evictionapi.Threshold, error) {
	values, err := parseAll(name, texts, parseValue)
	if err != nil {
		return nil, err
	}
	var thresholds []evictionapi.Threshold
	for _, signal := range observe.Signals() {
		if value, given := values[signal]; given && value != nil {
			thresholds = append(thresholds, evictionapi.Threshold{
				Signal:   signal,
				Operator: evictionapi.OpForSignal[signal],
				Value:    *value,
			})
		}
	}
	return thresholds, nil
}

// parseAll parses one map of the configuration. Faults are in the order of the
// keys, so that the same configuration always gives the same error.
func parseAll[T any](name string, texts map[string]string, parse func(string) (T, error)) (map[evictionapi.Signal]T, error) {
	values := make(map[evictionapi.Signal]T, len(texts))
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		signal := evictionapi.Signal(key)
		if _, known := observe.TraitsOf(signal); !known {
			faults = append(faults, fmt.Errorf("%s: unsupported eviction signal %q; the signals are %s", name, key, signalNames()))
			continue
		}
		value, err := parse(texts[key])
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %q: %w", name, key, texts[key], err))
			continue
		}
		values[signal] = value
	}
	return values, errors.Join(faults...)
}

func signalNames() string {
	var names []string
	for _, signal := range observe.Signals() {
		names = append(names, string(signal))
	}
	return strings.Join(names, ", ")
}

// parseValue parses what a signal must not fall below; nil when the text
// leaves the signal unguarded.
func parseValue(text string) (*evictionapi.ThresholdValue, error) {
	if text == "0%" || text == "100%" {
		return nil, nil
	}
	if strings.HasSuffix(text, "%") {
		percentage, err := Percentage(text)
		switch {
		case err != nil:
			return nil, err
		case percentage < 0 || percentage > 1:
			return nil, errors.New("a percentage must lie between 0% and 100%")
		}
		return &evictionapi.ThresholdValue{Percentage: percentage}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return nil, err
	case quantity.Sign() <= 0:
		return nil, errors.New("a threshold must be above 0")
	}
	return &evictionapi.ThresholdValue{Quantity: &quantity}, nil
}

// Percentage parses a text such as "12.5%" into a fraction, here 0.125.
func Percentage(text string) (float32, error) {
	value, err := strconv.ParseFloat(strings.TrimRight(text, "%"), 32)
	if err != nil {
		return 0, fmt.Errorf("not a percentage: %w", err)
	}
	// Upstream divides as a float32, and thresholds must not differ by a byte.
	return float32(value) / 100, nil
}

func parseGrace(text string) (time.Duration, error) {
	grace, err := time.ParseDuration(text)
	if err == nil && grace < 0 {
		return 0, errors.New("a grace period must not be negative")
	}
	return grace, err
}

func parseMinimumReclaim(text string) (evictionapi.ThresholdValue, error) {
	if strings.HasSuffix(text, "%") {
		percentage, err := Percentage(text)
		if err == nil && percentage <= 0 {
			err = errors.New("a percentage to reclaim must be above 0%")
		}
		return evictionapi.ThresholdValue{Percentage: percentage}, err
	}
	quantity, err := resource.ParseQuantity(text)
	if err == nil && quantity.Sign() < 0 {
		err = errors.New("an amount to reclaim must not be negative")
	}
	return evictionapi.ThresholdValue{Quantity: &quantity}, err
}
