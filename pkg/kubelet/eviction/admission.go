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
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

var memoryPressureTaint = v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule}

// admit says whether the node takes a pod on. Without conditions it takes all,
// and critical pods always. Under memory pressure alone it still takes pods
// that request something, and those that tolerate the condition's taint. The
// kubelet calls Admit, whose parameters depend on its version.
func (m *manager) admit(ctx context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	conditions := m.conditions()
	if utilfeature.DefaultFeatureGate.Enabled(evictionEvidence) && attrs.Pod.Status.Phase == v1.PodRunning {
		// A kubelet that starts again is given the pods that it had; that they run
		// is no offence, and if one has to go a pass will say so (#83612).
		return lifecycle.PodAdmitResult{Admit: true}
	}
	if len(conditions) == 0 || rank.Critical(attrs.Pod) || slices.Equal(conditions, []v1.NodeConditionType{v1.NodeMemoryPressure}) && bearsMemoryPressure(ctx, attrs.Pod) {
		return lifecycle.PodAdmitResult{Admit: true}
	}
	return lifecycle.PodAdmitResult{Reason: Reason, Message: fmt.Sprintf("The node had condition: %v. ", conditions)}
}

func bearsMemoryPressure(ctx context.Context, pod *v1.Pod) bool {
	return v1qos.GetPodQOS(pod) != v1.PodQOSBestEffort ||
		corev1helpers.TolerationsTolerateTaint(klog.FromContext(ctx), pod.Spec.Tolerations, &memoryPressureTaint,
			utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators))
}

// IsUnderMemoryPressure says whether the node has the condition MemoryPressure.
func (m *manager) IsUnderMemoryPressure() bool {
	return slices.Contains(m.conditions(), v1.NodeMemoryPressure)
}

// IsUnderDiskPressure says whether the node has the condition DiskPressure.
func (m *manager) IsUnderDiskPressure() bool {
	return slices.Contains(m.conditions(), v1.NodeDiskPressure)
}

// IsUnderPIDPressure says whether the node has the condition PIDPressure.
func (m *manager) IsUnderPIDPressure() bool {
	return slices.Contains(m.conditions(), v1.NodePIDPressure)
}
