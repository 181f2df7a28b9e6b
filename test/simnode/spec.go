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

// Package simnode is a node that lives in simulated time: its pods grow, its
// disks fill, its kills take a while and its space comes back late. It offers
// what an eviction manager asks of the kubelet, and keeps a trace of everything
// that the manager did to it. A node is described by a few lines of text, which
// is how scenarios are written and how a failing random node is printed.
package simnode

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Curve is a quantity that changes at a steady rate: "8Gi", "8Gi+600Mi/s",
// "20Gi-1Gi/s". It never falls below 0.
type Curve struct {
	Base int64
	// Rate is the change a second.
	Rate int64
}

// At returns the value after a time.
func (c Curve) At(t time.Duration) int64 {
	return max(0, c.Base+int64(float64(c.Rate)*t.Seconds()))
}

func (c Curve) String() string {
	switch {
	case c.Rate > 0:
		return number(c.Base) + "+" + number(c.Rate) + "/s"
	case c.Rate < 0:
		return number(c.Base) + "-" + number(-c.Rate) + "/s"
	}
	return number(c.Base)
}

// Window is a span of time, from From up to but not including To.
type Window struct{ From, To time.Duration }

// Has says whether a time lies in the window.
func (w Window) Has(t time.Duration) bool { return t >= w.From && t < w.To }

// Always is a window without an end.
var Always = Window{To: math.MaxInt64}

func (w Window) String() string {
	if w == Always {
		return "always"
	}
	return w.From.String() + ".." + w.To.String()
}

// Spec describes a node and what happens on it.
type Spec struct {
	Node NodeSpec
	// Hard, Soft, Grace and MinReclaim are the kubelet's eviction settings.
	Hard, Soft, Grace, MinReclaim map[string]string
	Pods                          []PodSpec
}

// NodeSpec describes the node itself. A filesystem's size of 0 means the
// defaults: 16Gi of memory, 100Gi and 1,000,000 inodes of each filesystem,
// 32768 process IDs.
type NodeSpec struct {
	Memory, Allocatable, System        int64
	NodeFs, ImageFs                    int64
	NodeFsUsed, ImageFsUsed            Curve
	NodeInodes, ImageInodes            int64
	MaxPID, Processes                  int64
	DedicatedImageFs, SplitContainerFs bool
	// Images and Dead are what unused images and dead containers hold, in bytes
	// and inodes.
	Images, Dead             int64
	ImagesInodes, DeadInodes int64
	// EachImage is the size of one of the images; 0 is one for all.
	EachImage int64
	// GC is how long a collection takes, GCRelease after how long its space
	// shows, and GCFails makes it fail.
	GC, GCRelease time.Duration
	GCFails       bool
	// StatsEvery is how old stats can get: they are taken at its multiples.
	StatsEvery time.Duration
	// NoProbes: nothing but the summaries shows what the node has.
	NoProbes bool
	// Untimed stats do not say when they were taken.
	Untimed bool
	// SummaryFails, DiskInfoFails and NoRuntimeStats are when those happen.
	SummaryFails, DiskInfoFails, NoRuntimeStats Window
	// SameSlice: the kubelet hands out one slice of pods until a pod comes or goes.
	SameSlice bool
	// AbsurdMemory, where not empty, is what the summary says is available in
	// the window AbsurdAt: any number that fits in 64 bits.
	AbsurdMemory string
	AbsurdAt     Window
	// PageCache is active page cache, which counts as used and could be given up; Stall
	// is how much of the time all tasks stand still for want of memory, in percent.
	// With either of them the summary has pressure, and the probe what could be given up.
	PageCache, Stall Curve
	// Swap is the node's, of which SwapUsed is taken by others than pods.
	Swap     int64
	SwapUsed Curve
	// GuardAllocatable: hard memory thresholds watch the pods' cgroup too.
	GuardAllocatable bool
	// NoLimits switches off the eviction of pods above their own limits.
	NoLimits bool
	// Transition, MaxGrace (seconds) and Interval are the kubelet's.
	Transition, Interval time.Duration
	MaxGrace             int64
	// For is how long the story lasts.
	For time.Duration
}

// PodSpec describes a pod.
type PodSpec struct {
	Name     string
	Priority *int32
	Static   bool
	Mirror   bool
	// GraceSeconds is the pod's own termination grace period.
	GraceSeconds *int64
	Memory       Curve
	// Layer, Logs, Volume (an emptyDir) and Host (a hostPath) are bytes; the
	// others inodes and processes.
	Layer, Logs, Volume, Host Curve
	LayerInodes, VolumeInodes Curve
	Processes                 Curve
	// Swap is what it holds in swap, and Stall its own share of the stall, in percent.
	Swap, Stall Curve
	// MemoryRequest, DiskRequest and so on are quantities as a person writes them.
	MemoryRequest, DiskRequest, DiskLimit, VolumeLimit string
	// PodMemoryRequest is a pod-level request.
	PodMemoryRequest, MemoryOverhead string
	// SidecarDiskLimit adds a restartable init container with that limit.
	SidecarDiskLimit string
	// Containers that share the use; the first has the requests and limits.
	Containers int64
	// Starts and Ends bound the pod's own life; 0 means the story's.
	Starts, Ends time.Duration
	NoStats      Window
	// NoMemoryStats and NoDiskStats leave out those parts of its stats.
	NoMemoryStats, NoDiskStats bool
	// AbsurdUse, where not empty, is what the stats say that the pod uses of
	// everything: any number that fits in 64 bits.
	AbsurdUse string
	// Kill is how long a kill takes; KillFails makes it return an error.
	Kill      time.Duration
	KillFails bool
	// Stops is how long the pod itself takes to stop when it is told to; at the end
	// of its grace it is stopped by force. FailsUntil is when kills stop to return
	// an error, and IgnoresKills how many report success and do nothing.
	Stops        time.Duration
	FailsUntil   time.Duration
	IgnoresKills int64
	// Finished: the containers have ended; the API server knows, the kubelet has
	// not cleaned up yet.
	Finished bool
	// Release is how long after its kill the pod's disk space shows, Cleanup
	// after how long the kubelet reports the pod as cleaned up.
	Release, Cleanup time.Duration
}

// field is one key of a line, and where its value lives.
type field struct {
	key string
	at  any
}

func (n *NodeSpec) fields() []field {
	return []field{
		{"memory", &n.Memory}, {"allocatable", &n.Allocatable}, {"system", &n.System},
		{"nodefs", &n.NodeFs}, {"imagefs", &n.ImageFs},
		{"nodefs-used", &n.NodeFsUsed}, {"imagefs-used", &n.ImageFsUsed},
		{"nodefs-inodes", &n.NodeInodes}, {"imagefs-inodes", &n.ImageInodes},
		{"max-pid", &n.MaxPID}, {"processes", &n.Processes},
		{"dedicated-imagefs", &n.DedicatedImageFs}, {"split-containerfs", &n.SplitContainerFs},
		{"unused-images", &n.Images}, {"each-image", &n.EachImage}, {"dead-containers", &n.Dead},
		{"unused-image-inodes", &n.ImagesInodes}, {"dead-container-inodes", &n.DeadInodes},
		{"gc", &n.GC}, {"gc-release", &n.GCRelease}, {"gc-fails", &n.GCFails},
		{"stats-every", &n.StatsEvery}, {"untimed", &n.Untimed}, {"no-probes", &n.NoProbes},
		{"summary-fails", &n.SummaryFails}, {"disk-info-fails", &n.DiskInfoFails}, {"no-runtime-stats", &n.NoRuntimeStats},
		{"same-slice", &n.SameSlice}, {"absurd-memory", &n.AbsurdMemory}, {"absurd-at", &n.AbsurdAt},
		{"page-cache", &n.PageCache}, {"stall", &n.Stall}, {"swap", &n.Swap}, {"swap-used", &n.SwapUsed},
		{"guard-allocatable", &n.GuardAllocatable}, {"no-limits", &n.NoLimits},
		{"transition", &n.Transition}, {"interval", &n.Interval}, {"max-grace", &n.MaxGrace}, {"for", &n.For},
	}
}

func (p *PodSpec) fields() []field {
	return []field{
		{"priority", &p.Priority}, {"static", &p.Static}, {"mirror", &p.Mirror}, {"grace", &p.GraceSeconds},
		{"memory", &p.Memory}, {"layer", &p.Layer}, {"logs", &p.Logs}, {"volume", &p.Volume}, {"host", &p.Host},
		{"layer-inodes", &p.LayerInodes}, {"volume-inodes", &p.VolumeInodes}, {"processes", &p.Processes},
		{"swap", &p.Swap}, {"stall", &p.Stall},
		{"memory-request", &p.MemoryRequest}, {"disk-request", &p.DiskRequest}, {"disk-limit", &p.DiskLimit},
		{"volume-limit", &p.VolumeLimit}, {"pod-memory-request", &p.PodMemoryRequest},
		{"memory-overhead", &p.MemoryOverhead}, {"sidecar-disk-limit", &p.SidecarDiskLimit},
		{"containers", &p.Containers}, {"starts", &p.Starts}, {"ends", &p.Ends},
		{"no-stats", &p.NoStats}, {"no-memory-stats", &p.NoMemoryStats}, {"no-disk-stats", &p.NoDiskStats},
		{"absurd-use", &p.AbsurdUse},
		{"kill", &p.Kill}, {"kill-fails", &p.KillFails},
		{"stops", &p.Stops}, {"fails-until", &p.FailsUntil}, {"ignores-kills", &p.IgnoresKills}, {"finished", &p.Finished},
		{"release", &p.Release}, {"cleanup", &p.Cleanup},
	}
}

// Parse reads a node from lines:
//
//	node memory=16Gi for=1m
//	hard memory.available<1Gi
//	soft memory.available<2Gi for 30s
//	min-reclaim memory.available=500Mi
//	pod leak memory=8Gi+600Mi/s memory-request=1Gi
//
// An error names the line.
func Parse(text string) (Spec, error) {
	spec := Spec{Hard: map[string]string{}, Soft: map[string]string{}, Grace: map[string]string{}, MinReclaim: map[string]string{}}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := spec.parseLine(words); err != nil {
			return Spec{}, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	spec.Node.setDefaults()
	return spec, nil
}

func (s *Spec) parseLine(words []string) error {
	switch kind := words[0]; {
	case kind == "node":
		return parseFields(s.Node.fields(), words[1:])
	case kind == "pod" && len(words) > 1:
		pod := PodSpec{Name: words[1]}
		if err := parseFields(pod.fields(), words[2:]); err != nil {
			return err
		}
		s.Pods = append(s.Pods, pod)
	case kind == "hard" && len(words) == 2:
		signal, value := compared(words[1])
		s.Hard[signal] = value
	case kind == "soft" && len(words) == 4:
		signal, value := compared(words[1])
		s.Soft[signal], s.Grace[signal] = value, words[3]
	case kind == "min-reclaim" && len(words) == 2:
		signal, value, _ := strings.Cut(words[1], "=")
		s.MinReclaim[signal] = value
	default:
		return fmt.Errorf("neither node, pod, hard, soft nor min-reclaim")
	}
	return nil
}

// compared takes a threshold apart: a signal is short below an amount, or above a
// percentage of the time.
func compared(text string) (signal, value string) {
	if at := strings.IndexAny(text, "<>"); at >= 0 {
		return text[:at], text[at+1:]
	}
	return text, ""
}

func (n *NodeSpec) setDefaults() {
	for at, value := range map[*int64]int64{
		&n.Memory: 16 << 30, &n.NodeFs: 100 << 30, &n.ImageFs: 100 << 30,
		&n.NodeInodes: 1_000_000, &n.ImageInodes: 1_000_000, &n.MaxPID: 32768, &n.MaxGrace: 0,
	} {
		if *at == 0 {
			*at = value
		}
	}
	if n.Allocatable == 0 {
		n.Allocatable = n.Memory
	}
	for at, value := range map[*time.Duration]time.Duration{
		&n.Transition: 5 * time.Minute, &n.Interval: 10 * time.Second, &n.For: time.Minute, &n.StatsEvery: time.Millisecond,
	} {
		if *at == 0 {
			*at = value
		}
	}
}

// String writes the node as Parse reads it.
func (s Spec) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "node%s\n", writeFields(s.Node.fields()))
	for _, signal := range sortedKeys(s.Hard) {
		fmt.Fprintf(&b, "hard %s<%s\n", signal, s.Hard[signal])
	}
	for _, signal := range sortedKeys(s.Soft) {
		fmt.Fprintf(&b, "soft %s<%s for %s\n", signal, s.Soft[signal], s.Grace[signal])
	}
	for _, signal := range sortedKeys(s.MinReclaim) {
		fmt.Fprintf(&b, "min-reclaim %s=%s\n", signal, s.MinReclaim[signal])
	}
	for i := range s.Pods {
		fmt.Fprintf(&b, "pod %s%s\n", s.Pods[i].Name, writeFields(s.Pods[i].fields()))
	}
	return b.String()
}

func parseFields(fields []field, words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		found := false
		for _, f := range fields {
			if f.key == key {
				found = true
				if err := parseValue(f.at, value); err != nil {
					return fmt.Errorf("%s: %w", word, err)
				}
			}
		}
		if !found {
			return fmt.Errorf("unknown key %q", key)
		}
	}
	return nil
}

func parseValue(at any, text string) (err error) {
	switch at := at.(type) {
	case *bool:
		*at = true
	case *string:
		*at = text
	case *int64:
		*at, err = parseNumber(text)
	case **int64:
		var n int64
		n, err = parseNumber(text)
		*at = &n
	case **int32:
		var n int64
		n, err = strconv.ParseInt(text, 10, 32)
		short := int32(n)
		*at = &short
	case *time.Duration:
		*at, err = time.ParseDuration(text)
	case *Window:
		*at, err = parseWindow(text)
	case *Curve:
		*at, err = parseCurve(text)
	default:
		err = fmt.Errorf("no parser for %T", at)
	}
	return err
}

func parseNumber(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	return q.Value(), err
}

func parseWindow(text string) (Window, error) {
	if text == "always" || text == "" {
		return Always, nil
	}
	from, to, _ := strings.Cut(text, "..")
	var w Window
	var err error
	if w.From, err = time.ParseDuration(from); err != nil {
		return w, err
	}
	w.To, err = time.ParseDuration(to)
	return w, err
}

func parseCurve(text string) (c Curve, err error) {
	base, rate, sign := text, "", int64(1)
	if at := strings.LastIndexAny(text, "+-"); at > 0 {
		base, rate = text[:at], strings.TrimSuffix(text[at+1:], "/s")
		if text[at] == '-' {
			sign = -1
		}
	}
	if c.Base, err = parseNumber(base); err != nil || rate == "" {
		return c, err
	}
	c.Rate, err = parseNumber(rate)
	c.Rate *= sign
	return c, err
}

func writeFields(fields []field) string {
	var b strings.Builder
	for _, f := range fields {
		text := ""
		switch at := f.at.(type) {
		case *bool:
			if *at {
				b.WriteString(" " + f.key)
			}
			continue
		case *string:
			text = *at
		case *int64:
			text = unlessZero(*at, number(*at))
		case **int64:
			if *at != nil {
				text = number(**at)
			}
		case **int32:
			if *at != nil {
				text = strconv.Itoa(int(**at))
			}
		case *time.Duration:
			text = unlessZero(*at, at.String())
		case *Window:
			text = unlessZero(*at, at.String())
		case *Curve:
			text = unlessZero(*at, at.String())
		}
		if text != "" {
			b.WriteString(" " + f.key + "=" + text)
		}
	}
	return b.String()
}

func unlessZero[T comparable](value T, text string) string {
	var zero T
	if value == zero {
		return ""
	}
	return text
}

func number(n int64) string {
	if n%1024 == 0 && n != 0 {
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return strconv.FormatInt(n, 10)
}

// Keys lists the settings that a line of a node and one of a pod may have.
func Keys() (node, pod []string) {
	for _, f := range (&NodeSpec{}).fields() {
		node = append(node, f.key)
	}
	for _, f := range (&PodSpec{}).fields() {
		pod = append(pod, f.key)
	}
	return node, pod
}
