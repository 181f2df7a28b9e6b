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
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// scalars are the settings around eviction that have one value.
var scalars = []struct {
	field string
	value func(*kubeletconfigv1beta1.KubeletConfiguration) string
}{
	{"evictionPressureTransitionPeriod", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return c.EvictionPressureTransitionPeriod.Duration.String()
	}},
	{"evictionMaxPodGracePeriod", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return fmt.Sprint(c.EvictionMaxPodGracePeriod)
	}},
	{"mergeDefaultEvictionSettings", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return fmt.Sprint(*c.MergeDefaultEvictionSettings)
	}},
	{"imageGCHighThresholdPercent", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return fmt.Sprint(*c.ImageGCHighThresholdPercent)
	}},
	{"imageGCLowThresholdPercent", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return fmt.Sprint(*c.ImageGCLowThresholdPercent)
	}},
	{"imageMinimumGCAge", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return c.ImageMinimumGCAge.Duration.String()
	}},
	{"imageMaximumGCAge", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return c.ImageMaximumGCAge.Duration.String()
	}},
	{"enforceNodeAllocatable", func(c *kubeletconfigv1beta1.KubeletConfiguration) string {
		return strings.Join(c.EnforceNodeAllocatable, ",")
	}},
}

// values lists what is in effect: thresholds, what the kubelet derives from them, and
// the settings around them.
func (l *linter) values() []Value {
	var all []Value
	for _, m := range []struct {
		field string
		texts map[string]string
	}{
		{threshold.EvictionHard, l.Kubelet.EvictionHard},
		{threshold.EvictionSoft, l.Kubelet.EvictionSoft},
		{threshold.EvictionSoftGracePeriod, l.Kubelet.EvictionSoftGracePeriod},
		{threshold.EvictionMinimumReclaim, l.Kubelet.EvictionMinimumReclaim},
		{"kubeReserved", l.Kubelet.KubeReserved},
		{"systemReserved", l.Kubelet.SystemReserved},
	} {
		for _, key := range inOrder(m.texts) {
			v := Value{Setting: m.field, Signal: key, Value: m.texts[key], Amount: l.amountOf(m.field, key, m.texts[key])}
			v.Origin, v.Where = l.origin(m.field, key)
			all = append(all, v)
		}
		if m.field == threshold.EvictionHard {
			all = append(all, l.derived()...)
		}
	}
	for _, s := range scalars {
		v := Value{Setting: s.field, Value: s.value(l.Kubelet)}
		v.Origin, v.Where = l.origin(s.field, "")
		if d := l.whereSet(s.field, ""); d != nil && s.field == "evictionPressureTransitionPeriod" && isZero(fmt.Sprint(d.set[s.field])) {
			v.Origin, v.Where = FromDefault, fmt.Sprintf("%v in %s is the default", d.set[s.field], v.Where)
		}
		all = append(all, v)
	}
	return append(all, l.allocatableValues()...)
}

// inOrder returns the keys in the order of the signals' table, and others after them.
func inOrder(texts map[string]string) []string {
	var keys []string
	for _, signal := range observe.Signals() {
		if _, set := texts[string(signal)]; set {
			keys = append(keys, string(signal))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// amountOf is a threshold in absolute numbers.
func (l *linter) amountOf(setting, signal, text string) string {
	capacity, known := l.node.Capacity[evictionapi.Signal(signal)]
	if !known || !strings.HasSuffix(text, "%") || setting == threshold.EvictionSoftGracePeriod {
		return ""
	}
	switch fraction, err := threshold.Percentage(text); {
	case err != nil:
		return ""
	case setting != threshold.EvictionMinimumReclaim && (text == "0%" || text == "100%"):
		return "off"
	default:
		return threshold.AmountText(evictionapi.Signal(signal), int64(float64(capacity)*float64(fraction)))
	}
}

// derived are the thresholds that the kubelet makes of others.
func (l *linter) derived() []Value {
	var all []Value
	own, memory := string(evictionapi.SignalAllocatableMemoryAvailable), string(evictionapi.SignalMemoryAvailable)
	if text, set := l.Kubelet.EvictionHard[memory]; set && l.Kubelet.EvictionHard[own] == "" && l.Settings().GuardAllocatable {
		all = append(all, Value{Setting: threshold.EvictionHard, Signal: own, Value: text, Origin: Derived, Where: "memory.available, for the pods' cgroup"})
	}
	if l.node.Layout == nil {
		return all
	}
	follows := "nodefs"
	if l.separateImages() {
		follows = "imagefs"
	}
	for _, name := range []string{".available", ".inodesFree"} {
		from := follows + name
		if text, set := l.Kubelet.EvictionHard[from]; set {
			all = append(all, Value{Setting: threshold.EvictionHard, Signal: "containerfs" + name, Value: text, Amount: l.amountOf(threshold.EvictionHard, from, text), Origin: Derived, Where: from})
		}
	}
	return all
}

// allocatableValues are what the node offers to pods.
func (l *linter) allocatableValues() []Value {
	var all []Value
	for _, row := range allocatable {
		capacity, known := l.node.Capacity[row.signal]
		reserved, readable := l.reserved(row.resource, row.signal)
		if !known || !readable {
			continue
		}
		left := max(capacity-reserved-l.setAside(row.signal, capacity), 0)
		v := Value{Setting: "allocatable", Signal: row.resource, Value: threshold.AmountText(row.signal, left), Origin: Derived, Where: "capacity less reservations and the hard threshold"}
		for name, reported := range l.node.Allocatable {
			if string(name) == row.resource && reported.Value() != left {
				v.Where += "; the node reports " + threshold.AmountText(row.signal, reported.Value())
			}
		}
		all = append(all, v)
	}
	return all
}
