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

package decide_test

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

const gi = uint64(1) << 30

// limited makes a container with a limit of ephemeral storage; none when empty.
func limited(name, limit string) v1.Container {
	c := v1.Container{Name: name}
	if limit != "" {
		c.Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
	}
	return c
}

func sidecar(c v1.Container) v1.Container {
	always := v1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func volume(medium v1.StorageMedium, limit string) v1.Volume {
	size := resource.MustParse(limit)
	return v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: medium, SizeLimit: &size}}}
}

// TestOverLimit has a row for each rule, and for each odd pod that upstream's
// manager was seen to treat in its own way. Every container of the stats holds
// what is given in layers, as much again in its log; so does the volume.
func TestOverLimit(t *testing.T) {
	tests := []struct {
		name   string
		spec   v1.PodSpec
		policy decide.Policy
		// holds is what each container's layer, each log, the volume, and the
		// whole pod hold, in bytes.
		layer, log, volume, pod uint64
		stats                   []string
		want                    string
	}{
		{name: "volume above its limit", spec: v1.PodSpec{Volumes: []v1.Volume{volume("", "1Gi")}}, volume: 2 * gi, want: decide.CauseEmptyDirLimit},
		{name: "volume at its limit", spec: v1.PodSpec{Volumes: []v1.Volume{volume("", "1Gi")}}, volume: gi},
		{name: "volume with a limit of nothing has none", spec: v1.PodSpec{Volumes: []v1.Volume{volume("", "0")}}, volume: gi},
		{name: "volume in memory", spec: v1.PodSpec{Volumes: []v1.Volume{volume(v1.StorageMediumMemory, "1Gi")}}, volume: 2 * gi, want: decide.CauseEmptyDirLimit},
		{name: "volume in memory that the kernel limits", policy: decide.Policy{KernelLimitsMemoryVolumes: true},
			spec: v1.PodSpec{Volumes: []v1.Volume{volume(v1.StorageMediumMemory, "1Gi")}}, volume: 2 * gi},
		{name: "pod above its containers' limits together", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "1Gi"), limited("b", "1Gi")}}, pod: 3 * gi, want: decide.CausePodLimit},
		{name: "container above its own", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "1Gi"), limited("b", "9Gi")}}, layer: gi, log: 1, stats: []string{"a"}, want: decide.CauseContainerLimit},
		{name: "container's layer does not count on a filesystem of its own", policy: decide.Policy{Layout: observe.Layout{DedicatedImageFs: true}},
			spec: v1.PodSpec{Containers: []v1.Container{limited("a", "1Gi"), limited("b", "9Gi")}}, layer: gi, log: 1, stats: []string{"a"}},
		{name: "sidecar above its own", spec: v1.PodSpec{InitContainers: []v1.Container{sidecar(limited("s", "1Gi"))}, Containers: []v1.Container{limited("a", "9Gi")}}, log: 2 * gi, stats: []string{"s"}, want: decide.CauseContainerLimit},
		{name: "sidecar above its own, before 1.37", policy: decide.Policy{IgnoresSidecarLimits: true},
			spec: v1.PodSpec{InitContainers: []v1.Container{sidecar(limited("s", "1Gi"))}, Containers: []v1.Container{limited("a", "9Gi")}}, log: 2 * gi, stats: []string{"s"}},
		{name: "sidecar above its own, before 1.37, with evidence", policy: decide.Policy{IgnoresSidecarLimits: true, Evidence: true},
			spec: v1.PodSpec{InitContainers: []v1.Container{sidecar(limited("s", "1Gi"))}, Containers: []v1.Container{limited("a", "9Gi")}}, log: 2 * gi, stats: []string{"s"}, want: decide.CauseContainerLimit},
		{name: "init container that ends is not held to a limit", spec: v1.PodSpec{InitContainers: []v1.Container{limited("i", "1Gi")}, Containers: []v1.Container{limited("a", "9Gi")}}, log: 2 * gi, stats: []string{"i"}},
		{name: "of one name the last container counts", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "10Gi"), limited("a", "5Gi")}}, log: 6 * gi, stats: []string{"a"}, want: decide.CauseContainerLimit},
		{name: "of one name a sidecar without a limit does not count", spec: v1.PodSpec{InitContainers: []v1.Container{sidecar(limited("a", ""))}, Containers: []v1.Container{limited("a", "5Gi")}}, log: 6 * gi, stats: []string{"a"}, want: decide.CauseContainerLimit},
		{name: "limit that does not fit in 64 bits is none for a container", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "10E")}}, log: math.MaxInt64, layer: math.MaxInt64, stats: []string{"a"}},
		{name: "limits beyond any machine do not wrap around", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "1e30"), limited("b", "1e30")}}, pod: 3 * gi},
		{name: "limit of the largest number, and more than that", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "9223372036854775807")}}, log: math.MaxInt64, layer: math.MaxInt64, stats: []string{"a"}, want: decide.CauseContainerLimit},
		{name: "negative overhead lowers the limit", spec: v1.PodSpec{
			Containers: []v1.Container{limited("a", "10Gi")}, Overhead: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("-5Gi")},
		}, pod: 7 * gi, want: decide.CausePodLimit},
		{name: "an underflow exceeds nothing", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "1Gi")}}, log: 1<<64 - 4096, stats: []string{"a"}},
		{name: "without limits nothing is exceeded", spec: v1.PodSpec{Containers: []v1.Container{limited("a", "")}}, log: 9 * gi, layer: 9 * gi, pod: 18 * gi, stats: []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: test.spec}
			stats := statsapi.PodStats{
				PodRef: statsapi.PodReference{UID: "p"}, EphemeralStorage: &statsapi.FsStats{UsedBytes: &test.pod},
				VolumeStats: []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: &test.volume}}},
			}
			for _, name := range test.stats {
				stats.Containers = append(stats.Containers, statsapi.ContainerStats{
					Name: name, Rootfs: &statsapi.FsStats{UsedBytes: &test.layer}, Logs: &statsapi.FsStats{UsedBytes: &test.log},
				})
			}
			seen := observe.FromSummary(&statsapi.Summary{Pods: []statsapi.PodStats{stats}}, observe.MemorySource{})
			test.policy.LocalStorageLimits = true
			_, decision := decide.Step(test.policy, decide.State{}, []*v1.Pod{pod}, seen, time.Unix(1, 0))
			cause := ""
			for _, eviction := range decision.OverLimit {
				cause = eviction.Cause
				if eviction.GracePeriodSeconds != 1 || eviction.Disruption {
					t.Errorf("%+v", eviction)
				}
			}
			if cause != test.want {
				t.Errorf("evicted for %q, want %q", cause, test.want)
			}
		})
	}
}
