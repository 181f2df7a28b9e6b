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

package observe

import (
	"math"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Parts is a set of the places where a pod keeps bytes and inodes.
type Parts uint8

// The parts. Which of them lie on one filesystem depends on how the node's
// disks are laid out.
const (
	// WritableLayers are what the containers wrote to their root filesystems.
	WritableLayers Parts = 1 << iota
	// Logs are the containers' logs.
	Logs
	// LocalVolumes are the volumes that live on the node's own filesystem:
	// hostPath, gitRepo, configMap, and emptyDir that is not held in memory.
	LocalVolumes
	// OwnVolumes are those of the local volumes that go when the pod does, which
	// a hostPath does not.
	OwnVolumes
)

// Disk is what a pod uses of a filesystem.
type Disk struct {
	Bytes  Amount
	Inodes Amount
}

// Of returns the bytes or the inodes.
func (d Disk) Of(resource v1.ResourceName) Amount {
	if resource == ResourceInodes {
		return d.Inodes
	}
	return d.Bytes
}

func (d *Disk) add(fs *statsapi.FsStats) {
	d.Bytes = d.Bytes.Add(BytesUsed(fs))
	if fs != nil && fs.InodesUsed != nil {
		d.Inodes = d.Inodes.Add(Units(int64(*fs.InodesUsed)))
	}
}

// DiskUsed adds up what the stats say of the parts. A number that is missing
// counts as nothing, as it does upstream. stats must not be nil.
func DiskUsed(pod *v1.Pod, stats *statsapi.PodStats, parts Parts) Disk {
	var used Disk
	for i := range stats.Containers {
		if parts&WritableLayers != 0 {
			used.add(stats.Containers[i].Rootfs)
		}
		if parts&Logs != 0 {
			used.add(stats.Containers[i].Logs)
		}
	}
	if parts&(LocalVolumes|OwnVolumes) == 0 {
		return used
	}
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; local(volume) && (parts&LocalVolumes != 0 || volume.HostPath == nil) {
			if fs := volumeStats(stats, volume.Name); fs != nil {
				used.add(fs)
			}
		}
	}
	return used
}

func local(volume *v1.Volume) bool {
	return volume.HostPath != nil || volume.GitRepo != nil || volume.ConfigMap != nil ||
		volume.EmptyDir != nil && volume.EmptyDir.Medium == v1.StorageMediumDefault
}

func volumeStats(stats *statsapi.PodStats, name string) *statsapi.FsStats {
	for i := range stats.VolumeStats {
		if stats.VolumeStats[i].Name == name {
			return &stats.VolumeStats[i].FsStats
		}
	}
	return nil
}

// BytesUsed returns the used bytes of a filesystem; nothing when unknown.
func BytesUsed(fs *statsapi.FsStats) Amount {
	if fs == nil || fs.UsedBytes == nil {
		return Amount{}
	}
	return Units(int64(*fs.UsedBytes))
}

// WorkingSet returns the working set in bytes; nothing when unknown.
func WorkingSet(memory *statsapi.MemoryStats) Amount {
	if memory == nil || memory.WorkingSetBytes == nil {
		return Amount{}
	}
	return Units(int64(*memory.WorkingSetBytes))
}

// Processes returns the number of processes; nothing when unknown.
func Processes(stats *statsapi.ProcessStats) uint64 {
	if stats == nil || stats.ProcessCount == nil {
		return 0
	}
	return *stats.ProcessCount
}

// LastVolumeUsed returns the used bytes of the last volume of that name in the
// stats, and whether they are known: false when there is no such volume or when
// its stats carry no usage (#50889).
func LastVolumeUsed(stats *statsapi.PodStats, name string) (Amount, bool) {
	for i := len(stats.VolumeStats) - 1; i >= 0; i-- {
		if volume := &stats.VolumeStats[i]; volume.Name == name {
			return BytesUsed(&volume.FsStats), volume.UsedBytes != nil
		}
	}
	return Amount{}, false
}

// MostHeld returns a number of bytes that no part of a pod's local storage
// exceeds, nor all of it together: what the stats say of the whole or the sum of
// the parts, whichever is more. It is the largest int64 when a number is too
// large to be true.
func MostHeld(stats *statsapi.PodStats) int64 {
	var parts, whole bound
	whole.add(stats.EphemeralStorage)
	for i := range stats.Containers {
		parts.add(stats.Containers[i].Rootfs)
		parts.add(stats.Containers[i].Logs)
	}
	for i := range stats.VolumeStats {
		parts.add(&stats.VolumeStats[i].FsStats)
	}
	return int64(max(parts, whole))
}

// bound adds up to the largest int64 and no further.
type bound uint64

func (b *bound) add(fs *statsapi.FsStats) {
	if fs != nil && fs.UsedBytes != nil {
		*b = min(*b+bound(min(*fs.UsedBytes, math.MaxInt64)), math.MaxInt64)
	}
}
