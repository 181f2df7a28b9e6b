//go:build !kubernetes1.35 && !kubernetes1.36

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

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
)

// What is particular to Kubernetes 1.37. docs/compatibility.md lists the
// differences; everything else is the same for every version.

// Admit says whether the node takes a pod on.
func (m *manager) Admit(ctx context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	return m.admit(ctx, attrs)
}

// hugePagesCount says whether the kubelet takes memory set aside for huge pages
// off what is available.
func hugePagesCount() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.HugepageAwareEviction)
}

// askVersion fills in how this version differs from others.
func askVersion(policy *decide.Policy) {
	policy.KernelLimitsMemoryVolumes = utilfeature.DefaultFeatureGate.Enabled(features.InPlacePodVerticalScalingMemoryBackedVolumes)
}
