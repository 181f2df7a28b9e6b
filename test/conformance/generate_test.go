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

package conformance

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

// randomNode draws nodes on which something happens: one or a few resources run
// towards their thresholds while everything that can be late, slow, missing or
// broken sometimes is.
var randomNode = rapid.Custom(func(t *rapid.T) simnode.Spec {
	spec := simnode.Spec{Hard: map[string]string{}, Soft: map[string]string{}, Grace: map[string]string{}, MinReclaim: map[string]string{}}
	troubles := rapid.SampledFrom([][]trouble{
		{memory}, {memory}, {nodeFs}, {imageFs}, {nodeInodes}, {imageInodes}, {pids}, {limits}, {calm},
		{memory, limits}, {nodeFs, limits}, {memory, nodeFs}, {pids, imageInodes}, {allocatable}, {containerFs}, {containerInodes},
	}).Draw(t, "troubles")
	drawNode(t, &spec.Node)
	drawPods(t, &spec, troubles)
	for _, trouble := range troubles {
		drawThresholds(t, &spec, trouble)
	}
	spec, err := simnode.Parse(spec.String())
	if err != nil {
		// What is written must be readable again, or no failure could be shown.
		t.Fatalf("a node that cannot be read: %v", err)
	}
	return spec
})

type trouble int

const (
	calm trouble = iota
	memory
	allocatable
	nodeFs
	imageFs
	containerFs
	nodeInodes
	imageInodes
	containerInodes
	pids
	limits
)

// absurd are numbers that a summary has been seen with, or might be: an
// underflow (#52386), and what lies around the ends of 64 bits.
var absurd = rapid.SampledFrom([]string{"18446744073709547520", "18446744073709551615", "9223372036854775807", "9223372036854775808", "0"})

// sometimes is true one time in n.
func sometimes(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(1, n).Draw(t, label) == n
}

func seconds(from, to int) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(from*1000, to*1000).Draw(t, "ms")) * time.Millisecond
	})
}

func window(t *rapid.T, label string) simnode.Window {
	from := seconds(0, 120).Draw(t, label+" from").Truncate(time.Second)
	return simnode.Window{From: from, To: from + time.Duration(rapid.IntRange(1, 60).Draw(t, label+" for"))*time.Second}
}

func drawNode(t *rapid.T, n *simnode.NodeSpec) {
	n.For = time.Duration(rapid.SampledFrom([]int{60, 60, 120, 180, 400}).Draw(t, "for")) * time.Second
	n.Interval = time.Duration(rapid.SampledFrom([]int{10, 10, 10, 3, 30}).Draw(t, "interval")) * time.Second
	n.Transition = time.Duration(rapid.SampledFrom([]int{300, 300, 30, 60, 5, -1}).Draw(t, "transition")) * time.Second
	n.MaxGrace = rapid.SampledFrom([]int64{0, 5, 30, 3600, -1}).Draw(t, "max grace")
	n.System = rapid.Int64Range(0, 4).Draw(t, "system") * 512 * mi
	n.NodeFsUsed = simnode.Curve{Base: rapid.Int64Range(0, 40).Draw(t, "nodefs used") * gi}
	n.ImageFsUsed = simnode.Curve{Base: rapid.Int64Range(0, 40).Draw(t, "imagefs used") * gi}
	n.Processes = rapid.Int64Range(100, 2000).Draw(t, "processes")
	n.StatsEvery = time.Duration(rapid.SampledFrom([]int{0, 1, 7, 10, 15, 60}).Draw(t, "stats every")) * time.Second
	n.Images = rapid.SampledFrom([]int64{0, gi, 30 * gi}).Draw(t, "images")
	n.Dead = rapid.SampledFrom([]int64{0, 500 * mi, 12 * gi}).Draw(t, "dead")
	n.ImagesInodes = rapid.SampledFrom([]int64{0, 10_000, 300_000}).Draw(t, "image inodes")
	n.DeadInodes = rapid.SampledFrom([]int64{0, 100, 50_000}).Draw(t, "dead inodes")
	n.GC = seconds(0, 20).Draw(t, "gc")
	n.GuardAllocatable = sometimes(t, 12, "guard allocatable")
	n.SameSlice = sometimes(t, 3, "same slice")
	if sometimes(t, 3, "a rare node") {
		n.GCRelease = seconds(0, 60).Draw(t, "gc release")
		n.GCFails = sometimes(t, 5, "gc fails")
		n.Untimed = sometimes(t, 4, "untimed")
		n.NoLimits = sometimes(t, 3, "no limits")
		if sometimes(t, 3, "summary fails") {
			n.SummaryFails = window(t, "summary fails")
		}
		if sometimes(t, 3, "disk info fails") {
			n.DiskInfoFails = simnode.Window{To: window(t, "disk info fails").To}
		}
		if sometimes(t, 3, "absurd memory") {
			n.AbsurdMemory, n.AbsurdAt = absurd.Draw(t, "available"), window(t, "absurd")
		}
		if sometimes(t, 3, "no runtime stats") {
			n.NoRuntimeStats = window(t, "no runtime stats")
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "layout") {
	case 2:
		n.DedicatedImageFs = true
	case 3:
		n.DedicatedImageFs, n.SplitContainerFs = true, true
	case 4:
		n.SplitContainerFs = sometimes(t, 4, "split without imagefs")
	}
}

func drawPods(t *rapid.T, spec *simnode.Spec, troubles []trouble) {
	// Above twelve pods the order of equals is that of an unstable sort.
	count := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 5, 8, 8, 13, 13, 25}).Draw(t, "pods")
	for i := range count {
		spec.Pods = append(spec.Pods, drawPod(t, fmt.Sprintf("p%d", i), troubles))
	}
}

func drawPod(t *rapid.T, name string, troubles []trouble) simnode.PodSpec {
	pod := simnode.PodSpec{Name: name, Containers: rapid.Int64Range(1, 2).Draw(t, "containers")}
	if !sometimes(t, 3, "no priority") {
		priority := rapid.SampledFrom([]int32{-10, 0, 0, 0, 1000, 2_000_000_000}).Draw(t, "priority")
		pod.Priority = &priority
	}
	if !sometimes(t, 4, "no grace") {
		grace := rapid.SampledFrom([]int64{0, 1, 30, 3600}).Draw(t, "grace")
		pod.GraceSeconds = &grace
	}
	// Few different values, so that pods are often equal in all but one respect.
	pod.Memory.Base = rapid.SampledFrom([]int64{0, 100 * mi, 100 * mi, gi, 3 * gi}).Draw(t, "memory")
	pod.MemoryRequest = rapid.SampledFrom([]string{"", "", "100Mi", "1Gi", "1.5Gi", "1000000000500m"}).Draw(t, "memory request")
	pod.Layer.Base = rapid.SampledFrom([]int64{0, 10 * mi, gi}).Draw(t, "layer")
	pod.Logs.Base = rapid.SampledFrom([]int64{0, mi, 2 * gi}).Draw(t, "logs")
	pod.Volume.Base = rapid.SampledFrom([]int64{0, 0, 3 * gi}).Draw(t, "volume")
	pod.DiskRequest = rapid.SampledFrom([]string{"", "", "1Gi", "5Gi"}).Draw(t, "disk request")
	pod.LayerInodes.Base = rapid.SampledFrom([]int64{10, 10, 5000}).Draw(t, "layer inodes")
	pod.VolumeInodes.Base = rapid.SampledFrom([]int64{0, 0, 5000}).Draw(t, "volume inodes")
	pod.Processes.Base = rapid.SampledFrom([]int64{1, 10, 10, 500}).Draw(t, "pod processes")
	pod.Kill = seconds(0, 3).Draw(t, "kill")
	pod.Cleanup = seconds(0, 5).Draw(t, "cleanup")
	if sometimes(t, 2, "it grows") {
		drawGrowth(t, &pod, rapid.SampledFrom(troubles).Draw(t, "growing"))
	}
	if sometimes(t, 4, "a rare pod") {
		drawRarities(t, &pod)
	}
	return pod
}

// drawGrowth lets a pod cause trouble, at a pace that takes it there within the story.
func drawGrowth(t *rapid.T, pod *simnode.PodSpec, cause trouble) {
	pace := rapid.Int64Range(1, 40).Draw(t, "pace")
	switch cause {
	case memory, allocatable:
		pod.Memory.Rate = pace * 10 * mi
	case nodeFs:
		pod.Volume.Rate = pace * 40 * mi
		pod.Logs.Rate = rapid.Int64Range(0, 10).Draw(t, "logs pace") * mi
	case imageFs, containerFs:
		pod.Layer.Rate = pace * 40 * mi
	case nodeInodes:
		pod.VolumeInodes.Rate = pace * 400
	case imageInodes, containerInodes:
		pod.LayerInodes.Rate = pace * 400
	case pids:
		pod.Processes.Rate = pace * 20
	case limits:
		drawLimits(t, pod)
	}
}

func drawLimits(t *rapid.T, pod *simnode.PodSpec) {
	limit := rapid.SampledFrom([]string{"", "2Gi", "2.5Gi", "3000M"})
	pod.VolumeLimit = limit.Draw(t, "volume limit")
	pod.DiskLimit = limit.Draw(t, "disk limit")
	pod.SidecarDiskLimit = limit.Draw(t, "sidecar limit")
	pod.Volume.Rate = rapid.Int64Range(0, 40).Draw(t, "volume pace") * mi
	pod.Layer.Rate = rapid.Int64Range(0, 40).Draw(t, "layer pace") * mi
	pod.Logs.Rate = rapid.Int64Range(0, 40).Draw(t, "logs pace") * mi
}

func drawRarities(t *rapid.T, pod *simnode.PodSpec) {
	switch rapid.IntRange(0, 10).Draw(t, "rarity") {
	case 0:
		pod.Static = true
	case 1:
		pod.Mirror = true
	case 2:
		pod.NoStats = window(t, "no stats")
	case 3:
		pod.NoStats = simnode.Always
	case 4:
		pod.NoMemoryStats = true
	case 5:
		pod.NoDiskStats = true
	case 6:
		pod.KillFails = true
	case 7:
		pod.Kill = seconds(0, 90).Draw(t, "slow kill")
		pod.Cleanup = seconds(0, 60).Draw(t, "slow cleanup")
	case 8:
		pod.PodMemoryRequest = rapid.SampledFrom([]string{"50Mi", "2Gi"}).Draw(t, "pod request")
		pod.MemoryOverhead = rapid.SampledFrom([]string{"", "64Mi"}).Draw(t, "overhead")
	case 9:
		pod.Starts = seconds(0, 60).Draw(t, "starts").Truncate(time.Second)
		pod.Ends = pod.Starts + seconds(1, 120).Draw(t, "ends").Truncate(time.Second)
	case 10:
		pod.AbsurdUse = absurd.Draw(t, "absurd use")
	}
	pod.Release = rapid.SampledFrom([]time.Duration{0, 0, 45 * time.Second}).Draw(t, "release")
}

// drawThresholds guards what is in trouble, and sometimes something else too.
func drawThresholds(t *rapid.T, spec *simnode.Spec, cause trouble) {
	signal, values := "memory.available", []string{"100Mi", "1Gi", "4Gi", "8Gi", "15%", "50%"}
	switch cause {
	case allocatable:
		spec.Node.GuardAllocatable = true
		spec.Node.Allocatable = rapid.Int64Range(4, 16).Draw(t, "allocatable") * gi
	case nodeFs:
		signal, values = "nodefs.available", []string{"10%", "20Gi", "50Gi", "60%"}
	case imageFs:
		signal, values = "imagefs.available", []string{"15%", "30Gi", "60Gi"}
	case containerFs:
		signal, values = "containerfs.available", []string{"15%", "30Gi"}
		spec.Hard["nodefs.available"] = rapid.SampledFrom([]string{"10%", "60Gi"}).Draw(t, "nodefs")
		spec.Hard["imagefs.available"] = rapid.SampledFrom([]string{"10%", "60Gi"}).Draw(t, "imagefs")
		if rapid.Bool().Draw(t, "soft filesystems") {
			for _, followed := range []string{"nodefs.available", "imagefs.available"} {
				spec.Soft[followed] = rapid.SampledFrom([]string{"20%", "70Gi"}).Draw(t, "soft "+followed)
				spec.Grace[followed] = rapid.SampledFrom([]string{"5s", "20s", "1m"}).Draw(t, "grace of "+followed)
			}
		}
	case containerInodes:
		signal, values = "containerfs.inodesFree", []string{"5%", "700000", "90%"}
		if rapid.Bool().Draw(t, "nodefs inodes") {
			spec.Hard["nodefs.inodesFree"] = rapid.SampledFrom([]string{"5%", "80%"}).Draw(t, "nodefs inodes value")
		}
	case nodeInodes:
		signal, values = "nodefs.inodesFree", []string{"5%", "700000", "90%"}
	case imageInodes:
		signal, values = "imagefs.inodesFree", []string{"5%", "700000", "90%"}
	case pids:
		signal, values = "pid.available", []string{"1000", "28000", "30k", "80%"}
	case limits, calm:
		return
	}
	draw := rapid.SampledFrom(values)
	if rapid.Bool().Draw(t, "hard "+signal) {
		spec.Hard[signal] = draw.Draw(t, "hard value")
	}
	if _, hard := spec.Hard[signal]; !hard || sometimes(t, 4, "soft too") {
		spec.Soft[signal] = draw.Draw(t, "soft value")
		spec.Grace[signal] = rapid.SampledFrom([]string{"0s", "5s", "30s", "1m30s"}).Draw(t, "grace")
	}
	if rapid.Bool().Draw(t, "minimum reclaim") {
		amounts := []string{"0", "500", "500Mi", "5Gi", "10%"}
		if !strings.HasSuffix(signal, ".available") || cause == pids {
			amounts = []string{"0", "500", "50k", "5G", "10%"} // counts have no units of bytes
		}
		spec.MinReclaim[signal] = rapid.SampledFrom(amounts).Draw(t, "reclaim")
	}
}
