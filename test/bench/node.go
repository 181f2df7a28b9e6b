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

package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/utils/clock"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// load is what runs short in a measured pass.
type load struct {
	name                     string
	freeMemory, freeDisk, of uint64
	// on: with the gates that change what a pass decides.
	on bool
}

var loads = []load{
	{name: "idle", freeMemory: 50, freeDisk: 50, of: 100},
	{name: "idle, on", freeMemory: 50, freeDisk: 50, of: 100, on: true},
	{name: "memory", freeMemory: 1, freeDisk: 50, of: 100},
	{name: "disk", freeMemory: 50, freeDisk: 1, of: 100},
}

// node has a summary that never changes and whose stats have no time, so that
// every pass has to do all its work again.
type node struct {
	summary *statsapi.Summary
	pods    []*v1.Pod
	// passed is sent on when a pass asks for the summary for the first time.
	passed   chan struct{}
	reclaims bool
	ctx      context.Context
}

func newNode(load load, count int) *node {
	n := &node{passed: make(chan struct{})}
	free := func(n uint64) (*uint64, *uint64) {
		available := n << 30
		used := (load.of - n) << 30
		return &available, &used
	}
	memoryFree, memoryUsed := free(load.freeMemory)
	diskFree, diskUsed := free(load.freeDisk)
	capacity := load.of << 30
	fs := &statsapi.FsStats{AvailableBytes: diskFree, UsedBytes: diskUsed, CapacityBytes: &capacity}
	n.summary = &statsapi.Summary{Node: statsapi.NodeStats{
		Memory: &statsapi.MemoryStats{AvailableBytes: memoryFree, WorkingSetBytes: memoryUsed},
		Fs:     fs, Runtime: &statsapi.RuntimeStats{ImageFs: fs, ContainerFs: fs},
	}}
	for i := range count {
		n.add(i)
	}
	return n
}

// add adds a pod of two containers and two volumes, with requests and limits,
// as a pod of an ordinary deployment has them.
func (n *node) add(i int) {
	name := fmt.Sprintf("pod-%d", i)
	priority, grace := int32(i%3), int64(30)
	limit := resource.MustParse("10Gi")
	container := func(name string) v1.Container {
		return v1.Container{Name: name, Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("64Mi"), v1.ResourceEphemeralStorage: resource.MustParse("1Gi")},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourceEphemeralStorage: resource.MustParse("10Gi")},
		}}
	}
	n.pods = append(n.pods, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("1c1a6b4e-0000-4000-8000-" + name), Annotations: map[string]string{"kubernetes.io/config.source": "api"}},
		Spec: v1.PodSpec{
			Priority: &priority, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{container("app"), container("proxy")},
			Volumes: []v1.Volume{
				{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}},
				{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}},
			},
		},
	})
	use := func(mi int) *uint64 { n := uint64(mi) << 20; return &n }
	fs := func(mi int) *statsapi.FsStats { return &statsapi.FsStats{UsedBytes: use(mi), InodesUsed: use(0)} }
	stats := statsapi.PodStats{
		PodRef: statsapi.PodReference{Name: name, UID: string(n.pods[i].UID)},
		Memory: &statsapi.MemoryStats{WorkingSetBytes: use(7919 * i % 300)}, EphemeralStorage: fs(200),
		VolumeStats: []statsapi.VolumeStats{{Name: "data", FsStats: *fs(7919 * i % 100)}, {Name: "token", FsStats: *fs(0)}},
	}
	for _, c := range []string{"app", "proxy"} {
		stats.Containers = append(stats.Containers, statsapi.ContainerStats{Name: c, Memory: stats.Memory, Rootfs: fs(7919 * i % 50), Logs: fs(1)})
	}
	n.summary.Pods = append(n.summary.Pods, stats)
}

// passes lets b.N passes run, from the first summary of one to that of the next.
func (n *node) passes(b *testing.B, start starter) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	defer cancel()
	n.ctx = ctx
	start(ctx, n)
	<-n.passed
	b.ResetTimer()
	for range b.N {
		<-n.passed
	}
	b.StopTimer()
}

// Get counts a pass, unless it is the second look after a reclaim.
func (n *node) Get(context.Context, bool) (*statsapi.Summary, error) {
	if n.reclaims {
		n.reclaims = false
		return n.summary, nil
	}
	select {
	case n.passed <- struct{}{}:
	case <-n.ctx.Done():
	}
	return n.summary, nil
}

func (n *node) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return n.summary, nil
}
func (n *node) HasDedicatedImageFs(context.Context) (bool, error)     { return false, nil }
func (n *node) HasDedicatedContainerFs(context.Context) (bool, error) { return false, nil }
func (n *node) DeleteAllUnusedContainers(context.Context) error       { return nil }
func (n *node) DeleteUnusedImages(context.Context) error {
	n.reclaims = true
	return nil
}
func (n *node) activePods() []*v1.Pod                                 { return slices.Clone(n.pods) }
func (n *node) cleanedUp(*v1.Pod) bool                                { return true }
func (n *node) kill(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error { return nil }

// hasty is a clock whose tickers tick at once, so that no pass waits for the
// clean-up after the last.
type hasty struct{ clock.RealClock }

func (hasty) NewTicker(time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(time.Microsecond)
}

// starter starts a manager whose passes follow each other without a pause.
type starter func(context.Context, *node)

var settings = map[string]string{"memory.available": "10%", "nodefs.available": "10%", "imagefs.available": "10%"}

func startUpstream(ctx context.Context, n *node) {
	thresholds, err := eviction.ParseThresholdConfig(nil, settings, nil, nil, nil)
	if err != nil {
		panic(err)
	}
	manager, _ := eviction.NewManager(n, eviction.Config{Thresholds: thresholds}, n.kill, n, n, &record.FakeRecorder{}, &v1.ObjectReference{}, hasty{}, true)
	manager.Start(ctx, n, n.activePods, n.cleanedUp, 0)
}

func startOurs(ctx context.Context, n *node) {
	thresholds, err := ours.ParseThresholdConfig(nil, settings, nil, nil, nil)
	if err != nil {
		panic(err)
	}
	manager, _ := ours.NewManager(n, ours.Config{Thresholds: thresholds}, n.kill, n, n, &record.FakeRecorder{}, &v1.ObjectReference{}, hasty{}, true)
	manager.Start(ctx, n, n.activePods, n.cleanedUp, 0)
}
