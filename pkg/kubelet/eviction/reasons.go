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
	v1 "k8s.io/api/core/v1"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/act"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
)

const (
	// Reason is the reason in an evicted pod's status and of its event, and of
	// a pod that is not admitted.
	Reason = act.Reason
	// OffendingContainersKey is the annotation of an eviction's event that lists
	// the containers above their requests.
	OffendingContainersKey = decide.OffendingContainersKey
	// OffendingContainersUsageKey lists what those containers used.
	OffendingContainersUsageKey = decide.OffendingContainersUsageKey
	// OffendingPodKey names the pod, where it has requests of its own.
	OffendingPodKey = decide.OffendingPodKey
	// OffendingPodUsageKey is what that pod used.
	OffendingPodUsageKey = decide.OffendingPodUsageKey
	// StarvedResourceKey is the resource that ran short.
	StarvedResourceKey = decide.StarvedResourceKey
)

// PodIsEvicted says whether a pod's status is that of an evicted pod.
func PodIsEvicted(podStatus v1.PodStatus) bool {
	return podStatus.Reason == Reason && podStatus.Phase == v1.PodFailed
}
