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

package lint

import (
	"slices"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// The rules that need more than thresholds: files, image garbage collection,
// reservations. The others are threshold.Rules.
const (
	RuleInvalidValue     = "invalid-value"
	RuleSoftNoGrace      = "soft-without-grace"
	RuleSoftActsAsHard   = "soft-acts-as-hard"
	RuleUnusedGrace      = "grace-without-soft"
	RuleUnusedReclaim    = "reclaim-without-threshold"
	RuleDefaultsDropped  = "defaults-dropped"
	RuleMergeInDropIn    = "merge-in-drop-in"
	RuleTransitionZero   = "transition-period-zero"
	RuleNegativePodGrace = "negative-pod-grace"
	RuleImageGCLate      = "image-gc-late"
	RuleImageGCRefused   = "image-gc-refused"
	RuleImagesStay       = "images-never-deleted"
	RuleAllocatableEmpty = "allocatable-empty"
	RuleFeatureGate      = "feature-gate"
	RuleLenientDecoding  = "lenient-decoding"
	RuleSkippedDropIn    = "skipped-drop-in"
)

// own are the rules of this package.
var own = []threshold.Rule{
	{
		Name: RuleInvalidValue, Severity: threshold.Error,
		Reason:  "The kubelet of this project does not start with it. Upstream's takes some such texts, and then has a threshold that guards nothing or is another than the one that is written.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/issues/97321", "https://github.com/openshift/machine-config-operator/pull/2314"},
	},
	{
		Name: RuleSoftNoGrace, Severity: threshold.Error,
		Reason:  "A soft threshold must be met for its grace period; without one the kubelet does not start.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/pull/18724"},
	},
	{
		Name: RuleSoftActsAsHard, Severity: threshold.Warning,
		Reason:  "A threshold without a grace period is a hard one to the kubelet: pods are killed at once, and allocatableMemory.available is watched by it too.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/pull/18724"},
	},
	{
		Name: RuleUnusedGrace, Severity: threshold.Note,
		Reason:  "A grace period belongs to a soft threshold; without one it does nothing. Often the threshold itself was forgotten.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/pull/18724"},
	},
	{
		Name: RuleUnusedReclaim, Severity: threshold.Warning,
		Reason:  "A minimum reclaim is added to a threshold once that is met; without a threshold it does nothing. Often the threshold itself was forgotten, or dropped with the other defaults.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/issues/112057"},
	},
	{
		Name: RuleDefaultsDropped, Severity: threshold.Warning,
		Reason:  "evictionHard replaces the default thresholds as a whole: a signal that is not named in it is not watched.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/issues/112057", "https://github.com/kubernetes/kubernetes/issues/119985", "https://github.com/kubernetes/kubernetes/pull/127577"},
	},
	{
		Name: RuleMergeInDropIn, Severity: threshold.Warning,
		Reason:  "The kubelet adds the default thresholds when it reads the file of --config, before it merges the drop-ins; there mergeDefaultEvictionSettings does nothing.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/pull/127577"},
	},
	{
		Name: RuleTransitionZero, Severity: threshold.Note,
		Reason:  "The kubelet takes 0 for not set and turns it into the default, five minutes. A node condition cannot be made to end at once.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/issues/129548"},
	},
	{
		Name: RuleNegativePodGrace, Severity: threshold.Note,
		Reason:  "It is documented as the pod's own grace period. Upstream's kubelet passes it on to the container runtime, which kills at once; this project's gives the pod its own grace period while EvictionConcurrentKills is on.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/issues/118172"},
	},
	{
		Name: RuleImageGCLate, Severity: threshold.Warning,
		Reason:  "The kubelet's image garbage collection looks every five minutes whether the disk is in use beyond imageGCHighThresholdPercent. Eviction looks all the time, so that with a threshold at or above the rest of the disk it comes first, and the node shows disk pressure for images that nobody uses.",
		Reports: []string{"https://github.com/kubernetes/kops/issues/2454", "https://github.com/kubernetes/kubernetes/issues/53074", "https://github.com/kubernetes/enhancements/pull/4739"},
	},
	{
		Name: RuleImageGCRefused, Severity: threshold.Error,
		Reason:  "The kubelet does not start unless imageGCLowThresholdPercent is less than imageGCHighThresholdPercent.",
		Reports: []string{"https://github.com/openshift/openshift-docs/pull/89161"},
	},
	{
		Name: RuleImagesStay, Severity: threshold.Warning,
		Reason:  "Image garbage collection is off with a high threshold of 100 and no maximum age, and eviction deletes images only when a disk's threshold is met.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/issues/79929"},
	},
	{
		Name: RuleAllocatableEmpty, Severity: threshold.Error,
		Reason:  "A node's allocatable resources are its capacity less kubeReserved, systemReserved and the hard threshold. With none left no pod that asks for any fits.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/pull/54127"},
	},
	{
		Name: RuleFeatureGate, Severity: threshold.Error,
		Reason:  "A kubelet does not start with a feature gate that it does not know, or that can no longer be changed. The gates are those of Kubernetes 1.37 and of this project.",
		Reports: []string{"https://github.com/siderolabs/talos/issues/13480", "https://github.com/kubernetes/kubernetes/issues/100988"},
	},
	{
		Name: RuleLenientDecoding, Severity: threshold.Warning,
		Reason:  "The kubelet says so in its log, ignores the field, and starts all the same: the setting has no effect.",
		Reports: []string{"https://github.com/kubernetes/kubernetes/pull/83204"},
	},
	{
		Name: RuleSkippedDropIn, Severity: threshold.Warning,
		Reason:  "The file has no effect; the kubelet says so at verbosity 4 only.",
		Reports: []string{"https://github.com/kubernetes/enhancements/pull/4031"},
	},
}

// Rules returns every rule, the ones of files first.
func Rules() []threshold.Rule {
	return append(slices.Clone(own), threshold.Rules()...)
}

// Finding is something in a configuration that is hardly meant.
type Finding struct {
	Name     string             `json:"name"`
	Severity threshold.Severity `json:"severity"`
	Signal   string             `json:"signal,omitempty"`
	// Where is the file and the line.
	Where   string   `json:"where,omitempty"`
	Problem string   `json:"problem"`
	Reason  string   `json:"reason"`
	Fix     string   `json:"fix"`
	Reports []string `json:"reports"`
	// Doc is the section of the documentation.
	Doc string `json:"doc"`
}

// Doc is where each rule has a section of its own.
const Doc = "docs/lint.md"

func ofRule(rule threshold.Rule) Finding {
	return Finding{Name: rule.Name, Severity: rule.Severity, Reason: rule.Reason, Reports: rule.Reports, Doc: Doc + "#" + rule.Name}
}

// finding makes one of a rule of this package.
func finding(name string, signal evictionapi.Signal, where, problem, fix string) Finding {
	at := slices.IndexFunc(own, func(r threshold.Rule) bool { return r.Name == name })
	f := ofRule(own[at])
	f.Signal, f.Where, f.Problem, f.Fix = string(signal), where, problem, fix
	return f
}

// severities, the least first.
var severities = []threshold.Severity{threshold.Note, threshold.Warning, threshold.Error}

// AtLeast says whether a finding is of that severity or a higher one.
func (f Finding) AtLeast(severity threshold.Severity) bool {
	return slices.Index(severities, f.Severity) >= slices.Index(severities, severity)
}

// Severities lists them, for flags.
func Severities() []string {
	var names []string
	for _, s := range severities {
		names = append(names, string(s))
	}
	return names
}
