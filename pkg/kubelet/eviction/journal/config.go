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
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Config is what a step goes by.
type Config struct {
	// Node whose journal it is, and Kubelet's version; whichever is known.
	Node    string `json:"node,omitempty"`
	Kubelet string `json:"kubelet,omitempty"`

	Thresholds []Threshold `json:"thresholds"`
	Layout     Layout      `json:"layout"`
	// PressureTransitionPeriod is how long a condition stays.
	PressureTransitionPeriod Seconds `json:"pressureTransitionPeriod"`
	MaxPodGracePeriodSeconds int64   `json:"maxPodGracePeriodSeconds"`
	LocalStorageLimits       bool    `json:"localStorageLimits"`
	// IgnoresSidecarLimits is so on kubelets before 1.37.
	IgnoresSidecarLimits bool `json:"ignoresSidecarLimits,omitempty"`
	// FeatureGates are the answers of those that a step depends on.
	FeatureGates map[string]bool `json:"featureGates"`
}

// Layout says how the node's filesystems are divided, as observe.Layout does.
type Layout struct {
	DedicatedImageFs    bool `json:"dedicatedImageFs,omitempty"`
	SeparateContainerFs bool `json:"separateContainerFs,omitempty"`
	Unsupported         bool `json:"unsupported,omitempty"`
}

// policyGates are the feature gates that a step depends on and where a policy
// keeps their answers.
var policyGates = []struct {
	name   string
	answer func(*decide.Policy) *bool
}{
	{"EvictionConcurrentKills", func(p *decide.Policy) *bool { return &p.ConcurrentKills }},
	{"EvictionEvidence", func(p *decide.Policy) *bool { return &p.Evidence }},
	{"EvictionReclaimableMemory", func(p *decide.Policy) *bool { return &p.ReclaimableMemory }},
	{"EvictionTargetedReclaim", func(p *decide.Policy) *bool { return &p.TargetedReclaim }},
	{"PodLevelResources", func(p *decide.Policy) *bool { return &p.PodLevelResources }},
	{"InPlacePodVerticalScalingMemoryBackedVolumes", func(p *decide.Policy) *bool { return &p.KernelLimitsMemoryVolumes }},
}

// Gates lists the names of the feature gates that a step depends on.
func Gates() []string {
	var names []string
	for _, gate := range policyGates {
		names = append(names, gate.name)
	}
	return names
}

// configOf writes a policy.
func configOf(policy decide.Policy) Config {
	c := Config{
		Layout:                   Layout(policy.Layout),
		PressureTransitionPeriod: Seconds(policy.PressureTransitionPeriod),
		MaxPodGracePeriodSeconds: policy.MaxPodGracePeriodSeconds,
		LocalStorageLimits:       policy.LocalStorageLimits,
		IgnoresSidecarLimits:     policy.IgnoresSidecarLimits,
		FeatureGates:             make(map[string]bool, len(policyGates)),
		Thresholds:               make([]Threshold, 0, len(policy.Thresholds)),
	}
	for _, t := range policy.Thresholds {
		c.Thresholds = append(c.Thresholds, thresholdOf(t))
	}
	for _, gate := range policyGates {
		c.FeatureGates[gate.name] = *gate.answer(&policy)
	}
	return c
}

// Policy reads what configOf wrote. Thresholds that it returns compare with == to
// those of the same call alone, as the kubelet's own do.
func (c *Config) Policy() (decide.Policy, error) {
	policy := decide.Policy{
		Layout:                   observe.Layout(c.Layout),
		PressureTransitionPeriod: time.Duration(c.PressureTransitionPeriod),
		MaxPodGracePeriodSeconds: c.MaxPodGracePeriodSeconds,
		LocalStorageLimits:       c.LocalStorageLimits,
		IgnoresSidecarLimits:     c.IgnoresSidecarLimits,
	}
	for i, written := range c.Thresholds {
		t, err := written.parse()
		if err != nil {
			return decide.Policy{}, fmt.Errorf("config.thresholds[%d]: %w", i, err)
		}
		policy.Thresholds = append(policy.Thresholds, t)
	}
	for _, gate := range policyGates {
		*gate.answer(&policy) = c.FeatureGates[gate.name]
	}
	return policy, nil
}

// Threshold as the kubelet's configuration has it, parsed.
type Threshold struct {
	Signal   evictionapi.Signal            `json:"signal"`
	Operator evictionapi.ThresholdOperator `json:"operator,omitempty"`
	Value    Value                         `json:"value"`
	// Grace is absent for a hard threshold.
	Grace      Seconds `json:"grace,omitempty"`
	MinReclaim *Value  `json:"minReclaim,omitempty"`
}

// Value is a quantity, or a part of the capacity between 0 and 1.
type Value struct {
	Quantity string  `json:"quantity,omitempty"`
	Fraction float32 `json:"fraction,omitempty"`
}

// textOf writes a quantity that others read at the same time: String keeps what it
// wrote in the quantity.
func textOf(q *resource.Quantity) string {
	own := q.DeepCopy()
	return own.String()
}

func valueOf(v evictionapi.ThresholdValue) Value {
	if v.Quantity != nil {
		return Value{Quantity: textOf(v.Quantity)}
	}
	return Value{Fraction: v.Percentage}
}

func (v Value) parse() (evictionapi.ThresholdValue, error) {
	if v.Quantity == "" {
		return evictionapi.ThresholdValue{Percentage: v.Fraction}, nil
	}
	quantity, err := resource.ParseQuantity(v.Quantity)
	if err != nil {
		return evictionapi.ThresholdValue{}, fmt.Errorf("quantity %q: %w", v.Quantity, err)
	}
	return evictionapi.ThresholdValue{Quantity: &quantity}, nil
}

func (v Value) String() string {
	if v.Quantity != "" {
		return v.Quantity
	}
	return fmt.Sprintf("%g%%", v.Fraction*100)
}

func thresholdOf(t evictionapi.Threshold) Threshold {
	written := Threshold{Signal: t.Signal, Operator: t.Operator, Value: valueOf(t.Value), Grace: Seconds(t.GracePeriod)}
	if t.MinReclaim != nil {
		reclaim := valueOf(*t.MinReclaim)
		written.MinReclaim = &reclaim
	}
	return written
}

func (t Threshold) parse() (evictionapi.Threshold, error) {
	value, err := t.Value.parse()
	if err != nil {
		return evictionapi.Threshold{}, fmt.Errorf("%s: %w", t.Signal, err)
	}
	read := evictionapi.Threshold{Signal: t.Signal, Operator: t.Operator, Value: value, GracePeriod: time.Duration(t.Grace)}
	if t.MinReclaim != nil {
		reclaim, err := t.MinReclaim.parse()
		if err != nil {
			return evictionapi.Threshold{}, fmt.Errorf("%s: minReclaim: %w", t.Signal, err)
		}
		read.MinReclaim = &reclaim
	}
	return read, nil
}

// String writes a threshold as people do: memory.available<1Gi, for soft ones with
// their grace period.
func (t Threshold) String() string {
	compared := "<"
	if t.Operator == observe.OpGreaterThan {
		compared = ">"
	}
	text := string(t.Signal) + compared + t.Value.String()
	if t.Grace != 0 {
		text += " for " + time.Duration(t.Grace).String()
	}
	return text
}

// WithGates returns the policy with some gates' answers changed; names that no step
// depends on change nothing.
func WithGates(policy decide.Policy, gates map[string]bool) decide.Policy {
	for _, gate := range policyGates {
		if answer, given := gates[gate.name]; given {
			*gate.answer(&policy) = answer
		}
	}
	return policy
}
