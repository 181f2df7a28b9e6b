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
package simnode

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// used is what pods and everything else hold at a time.
type used struct {
	memory, processes, swap                  int64
	layers, other, layerInodes, otherInodes  int64
	dead, images, deadInodes, unusedImInodes int64
}

func (n *Node) usedAt(at time.Duration) used {
	var u used
	for _, pod := range n.pods {
		if pod.running(at) {
			u.memory += pod.use(pod.Memory, at)
			u.processes += pod.use(pod.Processes, at)
			u.swap += pod.use(pod.Swap, at)
		}
		layers, other, layerInodes, otherInodes := pod.disk(at)
		u.layers += layers
		u.other += other
		u.layerInodes += layerInodes
		u.otherInodes += otherInodes
	}
	node := n.Spec.Node
	if n.freedDead == never || at < n.freedDead+node.GCRelease {
		u.dead, u.deadInodes = node.Dead, node.DeadInodes
	}
	u.images, u.unusedImInodes = node.Images, node.ImagesInodes
	for _, piece := range n.freedPieces {
		if at >= piece.at+node.GCRelease {
			u.images -= piece.bytes
			u.unusedImInodes -= piece.inodes
		}
	}
	if n.freedImages != never && at >= n.freedImages+node.GCRelease {
		u.images, u.unusedImInodes = 0, 0
	}
	return u
}

// pressure says whether the node shows any.
func (n *Node) pressure() bool {
	return n.Spec.Node.PageCache != Curve{} || n.Spec.Node.Stall != Curve{} ||
		slices.ContainsFunc(n.Spec.Pods, func(pod PodSpec) bool { return pod.Stall != Curve{} })
}

// pageCache is what the pods leave of it.
func (n *Node) pageCache(u used, at time.Duration) int64 {
	return max(0, min(n.Spec.Node.PageCache.At(at), n.Spec.Node.Memory-n.Spec.Node.System-u.memory))
}

// stallAt is the node's own stall and the most of its pods'.
func (n *Node) stallAt(at time.Duration) float64 {
	stall := n.Spec.Node.Stall.At(at)
	for _, pod := range n.pods {
		if pod.running(at) {
			stall = max(stall, pod.use(pod.Stall, at))
		}
	}
	return float64(min(stall, 100))
}

func psi(percent float64) *statsapi.PSIStats {
	data := statsapi.PSIData{Total: 1, Avg10: percent, Avg60: percent}
	return &statsapi.PSIStats{Some: data, Full: data}
}

func (n *Node) summary(at, now time.Duration) *statsapi.Summary {
	node := n.Spec.Node
	u := n.usedAt(at)
	taken := metav1.NewTime(n.start.Add(at))
	if node.Untimed {
		taken = metav1.Time{}
	}
	memory := func(capacity, used int64) *statsapi.MemoryStats {
		available := max(0, capacity-used)
		return &statsapi.MemoryStats{Time: taken, AvailableBytes: unsigned(available), WorkingSetBytes: unsigned(capacity - available), UsageBytes: unsigned(capacity - available)}
	}
	filesystem := func(bytes, usedBytes, inodes, usedInodes int64) *statsapi.FsStats {
		return &statsapi.FsStats{
			Time:           taken,
			AvailableBytes: unsigned(max(0, bytes-usedBytes)), CapacityBytes: unsigned(bytes), UsedBytes: unsigned(usedBytes),
			InodesFree: unsigned(max(0, inodes-usedInodes)), Inodes: unsigned(inodes), InodesUsed: unsigned(usedInodes),
		}
	}
	nodeBytes, nodeInodes := node.NodeFsUsed.At(at)+u.other, u.otherInodes
	imageBytes, imageInodes := node.ImageFsUsed.At(at)+u.images, u.unusedImInodes
	layerBytes, layerInodes := u.layers+u.dead, u.layerInodes+u.deadInodes
	if node.DedicatedImageFs && !node.SplitContainerFs {
		imageBytes, imageInodes = imageBytes+layerBytes, imageInodes+layerInodes
	} else {
		nodeBytes, nodeInodes = nodeBytes+layerBytes, nodeInodes+layerInodes
	}
	if !node.DedicatedImageFs {
		nodeBytes, nodeInodes = nodeBytes+imageBytes, nodeInodes+imageInodes
	}
	nodeFs := filesystem(node.NodeFs, nodeBytes, node.NodeInodes, nodeInodes)
	imageFs, containerFs := nodeFs, nodeFs
	if node.DedicatedImageFs {
		imageFs = filesystem(node.ImageFs, imageBytes, node.ImageInodes, imageInodes)
		if !node.SplitContainerFs {
			containerFs = imageFs
		}
	}
	processes, maxPID := node.Processes+u.processes, node.MaxPID
	summary := &statsapi.Summary{Node: statsapi.NodeStats{
		Memory:           memory(node.Memory, node.System+u.memory+n.pageCache(u, at)),
		SystemContainers: []statsapi.ContainerStats{{Name: statsapi.SystemContainerPods, Memory: memory(node.Allocatable, u.memory)}},
		Fs:               nodeFs,
		Rlimit:           &statsapi.RlimitStats{Time: taken, MaxPID: &maxPID, NumOfRunningProcesses: &processes},
	}}
	if n.pressure() {
		summary.Node.Memory.PSI = psi(n.stallAt(at))
	}
	if node.Swap > 0 {
		held := min(node.Swap, node.SwapUsed.At(at)+u.swap)
		summary.Node.Swap = &statsapi.SwapStats{Time: taken, SwapAvailableBytes: unsigned(node.Swap - held), SwapUsageBytes: unsigned(held)}
	}
	if node.AbsurdMemory != "" && node.AbsurdAt.Has(now) {
		summary.Node.Memory.AvailableBytes = absurd(node.AbsurdMemory)
	}
	if !node.NoRuntimeStats.Has(now) {
		summary.Node.Runtime = &statsapi.RuntimeStats{ImageFs: imageFs, ContainerFs: containerFs}
	}
	for _, pod := range n.pods {
		if pod.running(at) && !pod.NoStats.Has(now) {
			summary.Pods = append(summary.Pods, pod.stats(at))
		}
	}
	return summary
}
