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
	"slices"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// ParseThresholdConfig parses the kubelet's eviction settings. When
// allocatableConfig, which is the kubelet's enforceNodeAllocatable, names pods,
// hard thresholds on memory.available also guard the pods' cgroup. The error
// lists every fault with its map, signal and text.
func ParseThresholdConfig(allocatableConfig []string, evictionHard, evictionSoft, evictionSoftGracePeriod, evictionMinimumReclaim map[string]string) ([]evictionapi.Threshold, error) {
	return threshold.Parse(threshold.Settings{
		Hard:             evictionHard,
		Soft:             evictionSoft,
		SoftGracePeriod:  evictionSoftGracePeriod,
		MinimumReclaim:   evictionMinimumReclaim,
		GuardAllocatable: slices.Contains(allocatableConfig, kubetypes.NodeAllocatableEnforcementKey),
		PressureSignals:  pressureSignals(),
	})
}

// UpdateContainerFsThresholds returns the thresholds with those of the
// container filesystem following nodefs or imagefs, whichever holds writable
// layers. The error names the ones that were set by hand and are overridden;
// the returned thresholds are good all the same.
func UpdateContainerFsThresholds(thresholds []evictionapi.Threshold, imageFs, separateContainerImageFs bool) ([]evictionapi.Threshold, error) {
	return threshold.WithContainerFs(thresholds, observe.Layout{DedicatedImageFs: imageFs, SeparateContainerFs: separateContainerImageFs})
}
