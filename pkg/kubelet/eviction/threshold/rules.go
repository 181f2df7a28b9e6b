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
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// largeDiskAmount is from where on a percentage is called a lot of space to leave
// idle: the sum of images and dead containers that the kubelet can clean up within
// its ten seconds is far less.
const largeDiskAmount = 100 << 30

// Rules whose findings others look for by name.
const (
	RuleUnguarded        = "unguarded"
	RuleImageFsUnguarded = "imagefs-unguarded"
)

// checks are the rules that need nothing but thresholds and capacities: the kubelet
// goes by them at its start, and lint too.
var checks = []check{
	{Rule{
		"soft-below-hard", Warning,
		"The hard threshold is met first and kills at once, so that the soft one and its grace period never act.",
		[]string{"https://github.com/kubernetes-sigs/karpenter/issues/2852"},
	}, softBelowHard},
	{Rule{
		"always-met", Error,
		"No more than the capacity can be available, so that the threshold is met from the start and for ever: the node keeps its pressure condition and evicts every pod it can. Only the texts 0% and 100% leave a signal unguarded.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/97321"},
	}, alwaysMet},
	{Rule{
		"never-met", Warning,
		"Less than nothing is never available, so that the threshold guards nothing.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/97321"},
	}, neverMet},
	{Rule{
		RuleUnguarded, Warning,
		"When the resource runs out the kubelet does nothing: the kernel's OOM killer chooses among all processes, or every write to the disk fails.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/119985"},
	}, unguarded},
	{Rule{
		RuleImageFsUnguarded, Warning,
		"Images and writable layers have a filesystem of their own, and the thresholds of nodefs do not watch it: it fills up without an eviction.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/121809", "https://github.com/kubernetes/kubernetes/issues/119985"},
	}, imageFsUnguarded},
	{Rule{
		"below-low-watermark", Warning,
		"Below its low watermark the kernel reclaims already, and processes stall; below the lower minimum the OOM killer comes before the eviction.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/131319"},
	}, belowLowWatermark},
	{Rule{
		"large-disk-percentage", Note,
		"A percentage that is right for a small disk leaves much of a large one idle, and evicts while there is plenty.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/54058"},
	}, largeDiskPercentage},
	{Rule{
		"unreachable-goal", Warning,
		"Once met, a threshold counts as resolved when its value and the minimum reclaim are available. That is more than there can be, so that the node goes on evicting.",
		[]string{"https://github.com/kubernetes/kubernetes/issues/99094"},
	}, unreachableGoal},
	{Rule{
		"no-pod-grace", Warning,
		"A pod that is evicted for a soft threshold gets the smaller of evictionMaxPodGracePeriod and its own grace period. 0, the default, kills it at once, as a hard threshold does.",
		[]string{"https://github.com/digitalocean/DOKS/issues/19", "https://github.com/kubernetes/kubernetes/issues/118172"},
	}, noPodGrace},
	{Rule{
		"containerfs-overridden", Warning,
		"The thresholds of the container filesystem follow those of the filesystem that it is on: imagefs where that is dedicated to images and layers, else nodefs (KEP-4191). What is written for it is ignored.",
		[]string{"https://github.com/kubernetes/enhancements/issues/4191"},
	}, containerFsOverridden},
}

// softBelowHard compares what can be compared: two amounts or two percentages always,
// one with the other where the capacity is known.
func softBelowHard(s Subject) []Finding {
	return s.each(func(soft evictionapi.Threshold) []Finding {
		if Hard(soft) {
			return nil
		}
		at := lastOf(s.Thresholds, soft.Signal, true)
		if at < 0 {
			return nil
		}
		hard := s.Thresholds[at]
		capacity, known := s.Capacity[soft.Signal]
		var below bool
		switch a, b := soft.Value, hard.Value; {
		case a.Quantity != nil && b.Quantity != nil:
			below = a.Quantity.Cmp(*b.Quantity) <= 0
		case a.Quantity == nil && b.Quantity == nil:
			below = a.Percentage <= b.Percentage
		case known:
			below = Quantity(soft, capacity).Cmp(*Quantity(hard, capacity)) <= 0
		}
		if !below {
			return nil
		}
		of := ""
		if known {
			of = " of " + AmountText(soft.Signal, capacity)
		}
		return []Finding{{
			Problem: fmt.Sprintf("%s lies at or below %s%s and can never act", Describe(soft, capacity, known), Describe(hard, capacity, known), of),
			Fix:     "set the soft threshold above the hard one, both as percentages or both as amounts",
		}}
	})
}

func alwaysMet(s Subject) []Finding {
	return s.each(func(t evictionapi.Threshold) []Finding {
		capacity, known := s.Capacity[t.Signal]
		whole := t.Value.Quantity == nil && t.Value.Percentage == 1
		amount, comparable := s.amount(t)
		if !whole && (!known || !comparable || amount < capacity) {
			return nil
		}
		problem := Describe(t, capacity, known) + " is met whatever is available"
		if known {
			problem += fmt.Sprintf(": the capacity is %s", AmountText(t.Signal, capacity))
		}
		return []Finding{{Problem: problem, Fix: "write less than the capacity, or exactly 100% to leave the signal unguarded"}}
	})
}

func neverMet(s Subject) []Finding {
	return s.each(func(t evictionapi.Threshold) []Finding {
		if amount, known := s.amount(t); t.Value.Quantity != nil || t.Value.Percentage != 0 && (!known || amount > 0) {
			return nil
		}
		return []Finding{{
			Problem: Describe(t, 0, false) + " is less than one unit and never met",
			Fix:     "write more, or exactly 0% to leave the signal unguarded",
		}}
	})
}

// unguarded looks for the signals that the kubelet's defaults guard on every node.
// Where everything is on one filesystem a threshold of imagefs guards it too.
func unguarded(s Subject) []Finding {
	var all []Finding
	for _, signal := range []evictionapi.Signal{evictionapi.SignalMemoryAvailable, evictionapi.SignalNodeFsAvailable, evictionapi.SignalNodeFsInodesFree} {
		_, known := s.Capacity[signal]
		twin, hasTwin := onOneFilesystem[signal]
		switch {
		case s.guarded(signal):
		case signal == evictionapi.SignalNodeFsInodesFree && !known:
			// Windows and some filesystems have no inodes.
		case hasTwin && s.Layout != nil && !s.Layout.DedicatedImageFs && s.guarded(twin):
		default:
			all = append(all, Finding{Signal: signal, Problem: "no threshold watches " + string(signal), Fix: "add it to evictionHard; the kubelet's default is " + defaultText[signal]})
		}
	}
	return all
}

// onOneFilesystem names the signal of imagefs that says the same as one of nodefs
// where there is one filesystem.
var onOneFilesystem = map[evictionapi.Signal]evictionapi.Signal{
	evictionapi.SignalNodeFsAvailable:  evictionapi.SignalImageFsAvailable,
	evictionapi.SignalNodeFsInodesFree: evictionapi.SignalImageFsInodesFree,
}

// defaultText is what the fixes suggest: upstream's defaults on Linux (v1.37.2).
var defaultText = map[evictionapi.Signal]string{
	evictionapi.SignalMemoryAvailable:   "100Mi",
	evictionapi.SignalNodeFsAvailable:   "10%",
	evictionapi.SignalNodeFsInodesFree:  "5%",
	evictionapi.SignalImageFsAvailable:  "15%",
	evictionapi.SignalImageFsInodesFree: "5%",
}

func imageFsUnguarded(s Subject) []Finding {
	if s.Layout == nil || !s.Layout.DedicatedImageFs {
		return nil
	}
	var all []Finding
	for _, signal := range []evictionapi.Signal{evictionapi.SignalImageFsAvailable, evictionapi.SignalImageFsInodesFree} {
		if _, known := s.Capacity[signal]; !s.guarded(signal) && (known || signal == evictionapi.SignalImageFsAvailable) {
			all = append(all, Finding{Signal: signal, Problem: "images have a filesystem of their own, and no threshold watches " + string(signal), Fix: "add it to evictionHard; the kubelet's default is " + defaultText[signal]})
		}
	}
	return all
}

// LowWatermark estimates the kernel's low watermark for a machine's memory, both in
// bytes, as Linux sets it up by itself: vm.min_free_kbytes is the square root of
// sixteen times the memory in KiB, from 128 KiB to 256 MiB (64 MiB before Linux
// 5.10); the low watermark is that plus the greater of a quarter of it and a
// thousandth of the memory (vm.watermark_scale_factor). With transparent huge pages
// min_free_kbytes is higher, 66 MiB on x86, so that the true watermark is rather
// above this than below. From the kernel's documentation, admin-guide/sysctl/vm.
func LowWatermark(memory int64) int64 {
	kib := math.Sqrt(16 * float64(memory) / 1024)
	least := int64(min(max(kib, 128), 256<<10)) * 1024
	return least + max(least/4, memory/1000)
}

func belowLowWatermark(s Subject) []Finding {
	memory, known := s.Capacity[evictionapi.SignalMemoryAvailable]
	if !known {
		return nil
	}
	low := LowWatermark(memory)
	return s.each(func(t evictionapi.Threshold) []Finding {
		if t.Signal != evictionapi.SignalMemoryAvailable || !Hard(t) {
			return nil
		}
		amount := Quantity(t, memory).Value()
		if amount >= low || amount == 0 {
			return nil
		}
		return []Finding{{
			Problem: fmt.Sprintf("%s is below the kernel's low watermark, about %s on a machine of %s", Describe(t, memory, true), AmountText(t.Signal, low), AmountText(t.Signal, memory)),
			Fix:     fmt.Sprintf("set it to %s or more, or lower vm.min_free_kbytes and vm.watermark_scale_factor", AmountText(t.Signal, roundUp(2*low, 64<<20))),
		}}
	})
}

func roundUp(amount, step int64) int64 {
	return (amount + step - 1) / step * step
}

func largeDiskPercentage(s Subject) []Finding {
	return s.each(func(t evictionapi.Threshold) []Finding {
		traits, _ := observe.TraitsOf(t.Signal)
		amount, known := s.amount(t)
		if traits.Resource != v1.ResourceEphemeralStorage || t.Value.Quantity != nil || !known || amount <= largeDiskAmount || amount >= s.Capacity[t.Signal] {
			return nil
		}
		return []Finding{{
			Problem: fmt.Sprintf("%s evicts while %s are free", Describe(t, s.Capacity[t.Signal], true), AmountText(t.Signal, amount)),
			Fix:     "write an amount, such as 20Gi, where all nodes of the configuration have large disks",
		}}
	})
}

func unreachableGoal(s Subject) []Finding {
	return s.each(func(t evictionapi.Threshold) []Finding {
		capacity, known := s.Capacity[t.Signal]
		if !known || t.MinReclaim == nil || Quantity(t, capacity).CmpInt64(capacity) >= 0 || Goal(t, capacity).CmpInt64(capacity) <= 0 {
			return nil
		}
		return []Finding{{
			Problem: fmt.Sprintf("%s is resolved at %s of %s", Describe(t, capacity, true), AmountText(t.Signal, Goal(t, capacity).Value()), AmountText(t.Signal, capacity)),
			Fix:     "lower evictionMinimumReclaim; a tenth of the threshold's distance to the capacity is plenty",
		}}
	})
}

func noPodGrace(s Subject) []Finding {
	if s.MaxPodGracePeriodSeconds != 0 || !slices.ContainsFunc(s.Thresholds, func(t evictionapi.Threshold) bool { return !Hard(t) }) {
		return nil
	}
	return []Finding{{
		Problem: "there are soft thresholds and evictionMaxPodGracePeriod is 0: their pods are killed without grace",
		Fix:     "set evictionMaxPodGracePeriod to as many seconds as pods may take to stop, such as 60",
	}}
}

func containerFsOverridden(s Subject) []Finding {
	return s.each(func(t evictionapi.Threshold) []Finding {
		traits, _ := observe.TraitsOf(t.Signal)
		if traits.Filesystem != observe.ContainerFs {
			return nil
		}
		return []Finding{{
			Problem: Describe(t, 0, false) + " is ignored",
			Fix:     "remove it, and set the threshold of nodefs or imagefs, whichever holds writable layers",
		}}
	})
}
