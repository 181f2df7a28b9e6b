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

package eviction

import (
	"context"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Config is what the kubelet configures. Fields that upstream's Config does not
// have mean "as upstream" when they are zero.
type Config struct {
	// Thresholds to watch. The slice is not changed.
	Thresholds []evictionapi.Threshold
	// MaxPodGracePeriodSeconds is the longest that a pod may take to stop when
	// it is evicted for a soft threshold, in seconds.
	MaxPodGracePeriodSeconds int64
	// PressureTransitionPeriod is how long a node condition stays after its
	// thresholds were last met.
	PressureTransitionPeriod time.Duration
	// PodCgroupRoot is the cgroup of all pods, below each hierarchy's mount point.
	PodCgroupRoot string
	// KernelMemcgNotification asks the kernel to report when a memory cgroup
	// crosses a threshold (cgroup v1), and runs a pass then.
	KernelMemcgNotification bool

	// Probe reads the raw numbers that EvictionPromptWake watches; nil means this
	// machine's own. A simulated node has another.
	Probe observe.Probe
	// FilesystemPaths returns a path on each filesystem whose signals are to be
	// probed; it is asked again until it answers. nil: none is probed, and the
	// summaries alone tell. The patch 0002-eviction-paths fills it.
	FilesystemPaths func(context.Context) (map[observe.Filesystem]string, error)
	// PodCgroupPath returns the cgroup of a pod below the memory hierarchy's mount
	// point, or "". With it pods are ranked by their memory at the moment, without
	// it by the summary's. The patch 0002-eviction-paths fills it.
	PodCgroupPath func(*v1.Pod) string
	// JournalDirectory is where EvictionJournal keeps its records: the file
	// eviction.jsonl and nine older ones, a mebibyte each. Empty: in memory alone. The
	// patch 0004-eviction-journal fills it.
	JournalDirectory string
	// JournalSink receives the records in place of files, a line each, from one
	// goroutine. A simulated node has one.
	JournalSink io.Writer
}

// Manager watches a node's thresholds. All its methods may be called side by side.
type Manager interface {
	// Start runs passes in the background until the context ends: one at once,
	// then one each monitoringInterval, or sooner after an eviction.
	Start(ctx context.Context, diskInfoProvider DiskInfoProvider, podFunc ActivePodsFunc, podCleanedUpFunc PodCleanedUpFunc, monitoringInterval time.Duration)
	// IsUnderDiskPressure says whether the node has the condition DiskPressure.
	IsUnderDiskPressure() bool
	// IsUnderMemoryPressure says whether the node has the condition MemoryPressure.
	IsUnderMemoryPressure() bool
	// IsUnderPIDPressure says whether the node has the condition PIDPressure.
	IsUnderPIDPressure() bool
}

// DiskInfoProvider knows how the node's filesystems are divided.
type DiskInfoProvider interface {
	// HasDedicatedImageFs says whether images lie on another filesystem than nodefs.
	HasDedicatedImageFs(ctx context.Context) (bool, error)
	// HasDedicatedContainerFs says whether writable layers lie on another
	// filesystem than images.
	HasDedicatedContainerFs(ctx context.Context) (bool, error)
}

// ContainerGC deletes containers.
type ContainerGC interface {
	// DeleteAllUnusedContainers deletes every container that is not running,
	// also those of pods that are not deleted.
	DeleteAllUnusedContainers(ctx context.Context) error
}

// ImageGC deletes images.
type ImageGC interface {
	// DeleteUnusedImages deletes every image that no container uses.
	DeleteUnusedImages(ctx context.Context) error
}

// ActivePodsFunc returns the pods of the node that have not ended. A pass may
// reorder the slice.
type ActivePodsFunc func() []*v1.Pod

// PodCleanedUpFunc says whether everything that a pod held has been given back.
type PodCleanedUpFunc func(*v1.Pod) bool

// MirrorPodFunc returns the mirror of a static pod, if there is one.
type MirrorPodFunc func(*v1.Pod) (*v1.Pod, bool)

// KillPodFunc kills a pod: it lets fn write the pod's last status, stops the
// containers within the grace period, in seconds, and returns when that is done.
type KillPodFunc func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, fn func(*v1.PodStatus)) error

// CgroupNotifier sends an event whenever a cgroup crosses a value.
type CgroupNotifier interface {
	// Start sends events until Stop is called or the context ends.
	Start(ctx context.Context, eventCh chan<- struct{})
	// Stop ends Start and frees what the notifier holds.
	Stop()
}

// ThresholdNotifier calls a handler when a memory threshold is crossed.
type ThresholdNotifier interface {
	// Description names the threshold for logs.
	Description() string
	// Start watches until the context ends.
	Start(ctx context.Context)
	// UpdateThreshold moves the value that is watched to fit the latest numbers.
	UpdateThreshold(ctx context.Context, summary *statsapi.Summary) error
}

// NotifierFactory makes cgroup notifiers.
type NotifierFactory interface {
	// NewCgroupNotifier makes one for the attribute of the cgroup at path to
	// cross threshold, in the attribute's unit.
	NewCgroupNotifier(logger klog.Logger, path, attribute string, threshold int64) (CgroupNotifier, error)
}
