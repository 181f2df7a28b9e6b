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
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Report is what lint says about a configuration.
type Report struct {
	Effective []Value   `json:"effective"`
	Findings  []Finding `json:"findings"`
	// Unknown are the signals whose capacity is not known and that have a threshold:
	// not all could be looked at.
	Unknown []string `json:"unknownCapacities,omitempty"`
}

// Worst says whether there is a finding of that severity or a higher one.
func (r *Report) Worst(severity threshold.Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.AtLeast(severity) })
}

// Lint looks through a configuration for a node.
func Lint(c *Config, node Node) *Report {
	l := &linter{Config: c, node: node}
	l.parse()
	all := slices.Clone(c.faults)
	for _, d := range c.documents() {
		all = append(all, d.faults...)
	}
	all = append(all, l.findings...)
	for _, find := range []func() []Finding{
		l.softActsAsHard, l.unused, l.defaultsDropped, l.mergeInDropIn, l.transitionZero, l.negativePodGrace,
		l.imageGC, l.imagesStay, l.allocatableEmpty, l.ofThresholds,
	} {
		all = append(all, find()...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return slices.Index(severities, b.Severity) - slices.Index(severities, a.Severity)
	})
	return &Report{Effective: l.values(), Findings: all, Unknown: l.unknown()}
}

type linter struct {
	*Config
	node Node
	// thresholds are those that are good.
	thresholds []evictionapi.Threshold
	// dropped are default thresholds that are not in effect.
	dropped  []string
	findings []Finding
}

// parse parses the thresholds; what is wrong is a finding each, and left out, so that
// the rest can be looked at.
func (l *linter) parse() {
	settings := l.Settings()
	byName := map[string]*map[string]string{
		threshold.EvictionHard: &settings.Hard, threshold.EvictionSoft: &settings.Soft,
		threshold.EvictionSoftGracePeriod: &settings.SoftGracePeriod, threshold.EvictionMinimumReclaim: &settings.MinimumReclaim,
	}
	for _, texts := range byName {
		*texts = maps.Clone(*texts)
	}
	// Once is enough for the texts; a soft threshold whose grace period was bad goes
	// in the second round.
	for range 3 {
		thresholds, err := threshold.Parse(settings)
		if err == nil {
			l.thresholds = thresholds
			return
		}
		for _, fault := range threshold.Faults(err) {
			where := l.where(fault.Map, fault.Signal)
			switch {
			case fault.Kind == threshold.NoGrace && l.Kubelet.EvictionSoftGracePeriod[fault.Signal] != "":
				// Its grace period is a finding already.
			case fault.Kind == threshold.NoGrace:
				l.findings = append(l.findings, finding(RuleSoftNoGrace, evictionapi.Signal(fault.Signal), where,
					fmt.Sprintf("evictionSoft has %s<%s, and evictionSoftGracePeriod has nothing for it", fault.Signal, fault.Text), "add "+fault.Signal+" to evictionSoftGracePeriod, such as 1m30s"))
			default:
				l.findings = append(l.findings, finding(RuleInvalidValue, evictionapi.Signal(fault.Signal), where,
					fmt.Sprintf("%s: %q: %s", fault.Map, fault.Text, fault.Problem), "allowed: "+fault.Allowed))
			}
			delete(*byName[fault.Map], fault.Signal)
		}
	}
}

// ofThresholds are the findings of the rules that the kubelet goes by as well.
func (l *linter) ofThresholds() []Finding {
	var all []Finding
	for _, f := range threshold.Findings(threshold.Subject{
		Thresholds: l.thresholds, MaxPodGracePeriodSeconds: int64(l.Kubelet.EvictionMaxPodGracePeriod),
		Capacity: l.node.Capacity, Layout: l.node.Layout,
	}) {
		signal := string(f.Signal)
		if f.Name == threshold.RuleUnguarded && (slices.Contains(l.dropped, signal) || l.invalid(signal)) {
			continue // another finding says so
		}
		one := ofRule(f.Rule)
		one.Severity, one.Signal, one.Problem, one.Fix = f.Severity, signal, f.Problem, f.Fix
		setting := threshold.EvictionHard
		if f.Soft {
			setting = threshold.EvictionSoft
		}
		one.Where = l.where(setting, signal)
		if signal == "" {
			one.Where = l.where("evictionMaxPodGracePeriod", "")
			one.Where = cmp.Or(one.Where, l.where(threshold.EvictionSoft, ""))
		}
		all = append(all, one)
	}
	return all
}

// invalid says whether a threshold of the signal was left out by parse.
func (l *linter) invalid(signal string) bool {
	return slices.ContainsFunc(l.findings, func(f Finding) bool { return f.Signal == signal })
}

func (l *linter) softActsAsHard() []Finding {
	var all []Finding
	for _, signal := range slices.Sorted(maps.Keys(l.Kubelet.EvictionSoft)) {
		for _, t := range l.thresholds {
			// A hard threshold of the same signal looks the same but for its value.
			if grace, written := l.Kubelet.EvictionSoftGracePeriod[signal]; written && string(t.Signal) == signal && threshold.Hard(t) && isZero(grace) {
				all = append(all, finding(RuleSoftActsAsHard, t.Signal, l.where(threshold.EvictionSoftGracePeriod, signal),
					fmt.Sprintf("evictionSoftGracePeriod of %s is %s", signal, grace), "give it a grace period, such as 1m30s, or write it in evictionHard"))
				break
			}
		}
	}
	return all
}

func isZero(grace string) bool {
	return strings.Trim(grace, "+0.hmsnuµμ") == ""
}

// unused are grace periods and minimum reclaims of signals that have no threshold.
func (l *linter) unused() []Finding {
	var all []Finding
	for _, signal := range slices.Sorted(maps.Keys(l.Kubelet.EvictionSoftGracePeriod)) {
		if _, soft := l.Kubelet.EvictionSoft[signal]; !soft {
			all = append(all, finding(RuleUnusedGrace, evictionapi.Signal(signal), l.where(threshold.EvictionSoftGracePeriod, signal),
				"evictionSoftGracePeriod names "+signal+", and evictionSoft does not", "add the threshold to evictionSoft, or remove the grace period"))
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(l.Kubelet.EvictionMinimumReclaim)) {
		if !slices.ContainsFunc(l.thresholds, func(t evictionapi.Threshold) bool { return string(t.Signal) == signal }) {
			all = append(all, finding(RuleUnusedReclaim, evictionapi.Signal(signal), l.where(threshold.EvictionMinimumReclaim, signal),
				"evictionMinimumReclaim names "+signal+", which no threshold watches", "add the threshold to evictionHard, or remove the minimum reclaim"))
		}
	}
	return all
}

func (l *linter) defaultsDropped() []Finding {
	if l.running {
		return nil
	}
	for _, signal := range slices.Sorted(maps.Keys(l.defaults)) {
		_, hard := l.Kubelet.EvictionHard[signal]
		_, soft := l.Kubelet.EvictionSoft[signal]
		if !hard && !soft {
			l.dropped = append(l.dropped, signal)
		}
	}
	if len(l.dropped) == 0 {
		return nil
	}
	var lost []string
	for _, signal := range l.dropped {
		lost = append(lost, signal+"<"+l.defaults[signal])
	}
	problem := "evictionHard is set, so that the defaults " + strings.Join(lost, ", ") + " are not in effect"
	fix := "set mergeDefaultEvictionSettings: true (Kubernetes 1.33 and later), or write them in evictionHard too; 0% says that a signal is not to be watched"
	if l.base == nil {
		problem = "there is no file of --config, and without one the kubelet has no default thresholds: " + strings.Join(lost, ", ") + " are not in effect"
		fix = "write them in evictionHard of a drop-in"
	}
	f := finding(RuleDefaultsDropped, "", l.where(threshold.EvictionHard, ""), problem, fix)
	// Where images are on nodefs its thresholds guard them too.
	separate := l.node.Layout != nil && l.node.Layout.DedicatedImageFs
	if !slices.ContainsFunc(l.dropped, func(signal string) bool { return separate || !strings.HasPrefix(signal, "imagefs.") }) {
		f.Severity = threshold.Note
	}
	return []Finding{f}
}

func (l *linter) mergeInDropIn() []Finding {
	var all []Finding
	for _, d := range l.dropIns {
		if on, _ := d.set["mergeDefaultEvictionSettings"].(bool); on && len(l.missingDefaults()) > 0 {
			all = append(all, finding(RuleMergeInDropIn, "", d.where("mergeDefaultEvictionSettings"),
				"mergeDefaultEvictionSettings in a drop-in has no effect: the defaults of "+strings.Join(l.missingDefaults(), ", ")+" are not added", "set it in the file of --config"))
		}
	}
	return all
}

func (l *linter) missingDefaults() []string {
	var missing []string
	for _, signal := range slices.Sorted(maps.Keys(l.defaults)) {
		if _, set := l.Kubelet.EvictionHard[signal]; !set {
			missing = append(missing, signal)
		}
	}
	return missing
}

func (l *linter) transitionZero() []Finding {
	const field = "evictionPressureTransitionPeriod"
	d := l.whereSet(field, "")
	if d == nil || !isZero(fmt.Sprint(d.set[field])) {
		return nil
	}
	return []Finding{finding(RuleTransitionZero, "", d.where(field),
		fmt.Sprintf("%s is %v, and the kubelet makes that %s", field, d.set[field], l.Kubelet.EvictionPressureTransitionPeriod.Duration), "remove it, or write how long a condition is to stay")}
}

func (l *linter) negativePodGrace() []Finding {
	if l.Kubelet.EvictionMaxPodGracePeriod >= 0 || len(l.Kubelet.EvictionSoft) == 0 {
		return nil
	}
	return []Finding{finding(RuleNegativePodGrace, "", l.where("evictionMaxPodGracePeriod", ""),
		fmt.Sprintf("evictionMaxPodGracePeriod is %d", l.Kubelet.EvictionMaxPodGracePeriod), "set it to as many seconds as any pod may take to stop")}
}

// imageGC compares the disk's use at which images are collected with what eviction
// leaves available.
func (l *linter) imageGC() []Finding {
	high, low := int(*l.Kubelet.ImageGCHighThresholdPercent), int(*l.Kubelet.ImageGCLowThresholdPercent)
	where := l.where("imageGCHighThresholdPercent", "")
	if low >= high {
		return []Finding{finding(RuleImageGCRefused, "", cmp.Or(where, l.where("imageGCLowThresholdPercent", "")),
			fmt.Sprintf("imageGCLowThresholdPercent is %d and imageGCHighThresholdPercent %d", low, high), "make the low one less than the high one")}
	}
	if high >= 100 {
		return nil // off; see imagesStay
	}
	share, highest := 0.0, evictionapi.Threshold{}
	for _, t := range l.thresholds {
		if s, known := l.share(t); known && l.onImageDisk(t.Signal) && s > share {
			share, highest = s, t
		}
	}
	// The collector cuts the available percentage off, so that it starts just below
	// 101-high percent available (upstream v1.37.2, image_gc_manager.go).
	severity, chance := threshold.Warning, "so that eviction always comes first"
	switch {
	case share < float64(100-high):
		return nil
	case share < float64(101-high):
		severity, chance = threshold.Note, "so that collecting has one percent of the disk, and five minutes, to come before eviction"
	}
	capacity, known := l.node.Capacity[highest.Signal]
	f := finding(RuleImageGCLate, highest.Signal, cmp.Or(where, l.where(threshold.EvictionHard, string(highest.Signal))),
		fmt.Sprintf("images are collected when %d%% of their disk are in use, %d%% available, %s: %s", high, 100-high, chance, threshold.Describe(highest, capacity, known)),
		fmt.Sprintf("set imageGCHighThresholdPercent to %d or less, and imageGCLowThresholdPercent below it", max(100-int(share)-5, 1)))
	f.Severity = severity
	return []Finding{f}
}

// share is a threshold in percent of the capacity.
func (l *linter) share(t evictionapi.Threshold) (float64, bool) {
	if t.Value.Quantity == nil {
		// A float32 holds 15 % as 0.15000000596; six digits are what is meant.
		return float64(int64(float64(t.Value.Percentage)*1e8+0.5)) / 1e6, true
	}
	capacity, known := l.node.Capacity[t.Signal]
	if !known || capacity <= 0 {
		return 0, false
	}
	return 100 * float64(t.Value.Quantity.Value()) / float64(capacity), true
}

// onImageDisk says whether a signal watches bytes of the disk with the images.
func (l *linter) onImageDisk(signal evictionapi.Signal) bool {
	one := l.node.Layout != nil && !l.node.Layout.DedicatedImageFs
	return signal == evictionapi.SignalImageFsAvailable || signal == evictionapi.SignalNodeFsAvailable && one
}

func (l *linter) imagesStay() []Finding {
	if *l.Kubelet.ImageGCHighThresholdPercent < 100 || l.Kubelet.ImageMaximumGCAge.Duration > 0 {
		return nil
	}
	for _, t := range l.thresholds {
		if t.Signal == evictionapi.SignalImageFsAvailable || t.Signal == evictionapi.SignalNodeFsAvailable && !l.separateImages() {
			return nil
		}
	}
	return []Finding{finding(RuleImagesStay, "", l.where("imageGCHighThresholdPercent", ""),
		"imageGCHighThresholdPercent is 100, imageMaximumGCAge is not set, and no threshold watches the disk with the images: nothing ever deletes one", "set one of the three")}
}

func (l *linter) separateImages() bool {
	return l.node.Layout != nil && l.node.Layout.DedicatedImageFs
}

// allocatable are the resources of which hard thresholds are set aside (upstream
// v1.37.2, cm.hardEvictionReservation).
var allocatable = []struct {
	resource string
	signal   evictionapi.Signal
}{
	{"memory", evictionapi.SignalMemoryAvailable},
	{"ephemeral-storage", evictionapi.SignalNodeFsAvailable},
}

// reserved is what is set aside of a resource besides the hard threshold; false when
// it cannot be read.
func (l *linter) reserved(name string, signal evictionapi.Signal) (int64, bool) {
	var sum int64
	for _, list := range []map[string]string{l.Kubelet.KubeReserved, l.Kubelet.SystemReserved} {
		text, set := list[name]
		if !set {
			continue
		}
		amount, err := threshold.ParseAmount(signal, text)
		if err != nil {
			return 0, false
		}
		sum += amount
	}
	return sum, sum >= 0
}

// setAside is the hard threshold of a signal, of a capacity.
func (l *linter) setAside(signal evictionapi.Signal, capacity int64) int64 {
	for _, t := range l.thresholds {
		if t.Signal == signal && threshold.Hard(t) {
			return threshold.Quantity(t, capacity).Value()
		}
	}
	return 0
}

func (l *linter) allocatableEmpty() []Finding {
	var all []Finding
	for _, row := range allocatable {
		capacity, known := l.node.Capacity[row.signal]
		reserved, readable := l.reserved(row.resource, row.signal)
		hard := l.setAside(row.signal, capacity)
		if !known || !readable || capacity-reserved-hard > 0 {
			continue
		}
		amount := func(n int64) string { return threshold.AmountText(row.signal, n) }
		all = append(all, finding(RuleAllocatableEmpty, row.signal, cmp.Or(l.where(threshold.EvictionHard, string(row.signal)), l.where("kubeReserved", row.resource)),
			fmt.Sprintf("of %s %s, %s are reserved and %s the hard threshold: nothing is allocatable", amount(capacity), row.resource, amount(reserved), amount(hard)),
			"lower the reservations or the threshold"))
	}
	return all
}

func (l *linter) unknown() []string {
	var signals []string
	for _, t := range l.thresholds {
		if _, known := l.node.Capacity[t.Signal]; !known && t.Operator == evictionapi.OpLessThan && t.Signal != evictionapi.SignalAllocatableMemoryAvailable && !slices.Contains(signals, string(t.Signal)) {
			signals = append(signals, string(t.Signal))
		}
	}
	return signals
}
