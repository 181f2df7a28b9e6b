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

package rank_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	resourcehelper "k8s.io/component-helpers/resource"
	v1resource "k8s.io/kubernetes/pkg/api/v1/resource"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/rank"
)

var names = []v1.ResourceName{v1.ResourceMemory, v1.ResourceEphemeralStorage, observe.ResourceInodes}

// resources draws a list that names some of the resources.
var resources = rapid.Custom(func(t *rapid.T) v1.ResourceList {
	list := v1.ResourceList{}
	for _, name := range names {
		if text := rapid.SampledFrom([]string{"", "0", "1", "1500m", "100Mi", "1.05Gi", "2G"}).Draw(t, string(name)); text != "" {
			list[name] = resource.MustParse(text)
		}
	}
	return list
})

var containers = rapid.Custom(func(t *rapid.T) v1.Container {
	c := v1.Container{Resources: v1.ResourceRequirements{Requests: resources.Draw(t, "requests"), Limits: resources.Draw(t, "limits")}}
	if rapid.Bool().Draw(t, "restarts") {
		always := v1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	return c
})

var pods = rapid.Custom(func(t *rapid.T) *v1.Pod {
	pod := &v1.Pod{Spec: v1.PodSpec{
		Containers:     rapid.SliceOfN(containers, 0, 3).Draw(t, "containers"),
		InitContainers: rapid.SliceOfN(containers, 0, 3).Draw(t, "init containers"),
	}}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].RestartPolicy = nil
	}
	if rapid.Bool().Draw(t, "pod level") {
		pod.Spec.Resources = &v1.ResourceRequirements{Requests: resources.Draw(t, "pod requests"), Limits: resources.Draw(t, "pod limits")}
	}
	if rapid.Bool().Draw(t, "overhead") {
		pod.Spec.Overhead = resources.Draw(t, "overhead list")
	}
	return pod
})

// Requests are upstream's, whatever a pod looks like.
func TestRequestIsUpstreams(t *testing.T) {
	for _, podLevel := range []bool{true, false} {
		if !podLevel {
			// Gates that need this one must go with it; each version has others.
			off := featuregatetesting.FeatureOverrides{}
			for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
				if strings.Contains(string(name), "PodLevelResource") {
					off[name] = false
				}
			}
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, off)
		}
		rapid.Check(t, func(t *rapid.T) {
			pod := pods.Draw(t, "pod")
			for _, name := range names {
				want := v1resource.GetResourceRequestQuantity(pod, name)
				if got := rank.Request(pod, name, podLevel); got != observe.AmountOf(&want) {
					t.Errorf("%s: %v, upstream %v", name, got, &want)
				}
			}
		})
	}
}

func TestEphemeralStorageLimitIsUpstreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := pods.Draw(t, "pod")
		want, given := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
		got, limited := rank.EphemeralStorageLimit(pod)
		if limited != given || got != observe.AmountOf(&want) {
			t.Errorf("%v, %v, upstream %v, %v", got, limited, &want, given)
		}
	})
}

func TestCriticalIsUpstreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		if source := rapid.SampledFrom([]string{"none", "", "api", "file", "http"}).Draw(t, "source"); source != "none" {
			pod.Annotations[kubetypes.ConfigSourceAnnotationKey] = source
		}
		if rapid.Bool().Draw(t, "mirror") {
			pod.Annotations[kubetypes.ConfigMirrorAnnotationKey] = rapid.SampledFrom([]string{"", "x"}).Draw(t, "hash")
		}
		if rapid.Bool().Draw(t, "priority") {
			priority := rapid.SampledFrom([]int32{-1, 0, 1_999_999_999, 2_000_000_000, 2_000_001_000}).Draw(t, "value")
			pod.Spec.Priority = &priority
		}
		if got, want := rank.Critical(pod), kubetypes.IsCriticalPod(pod); got != want {
			t.Errorf("%v, upstream %v", got, want)
		}
	})
}
