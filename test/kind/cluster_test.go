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

// Package kind holds what hack/kind gives to a cluster to what its kubelets take.
package kind

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// cluster is as much of kind's configuration as is looked at here.
type cluster struct {
	Kind                 string          `json:"kind"`
	APIVersion           string          `json:"apiVersion"`
	FeatureGates         map[string]bool `json:"featureGates"`
	KubeadmConfigPatches []string        `json:"kubeadmConfigPatches"`
}

// TestKubeletTakesTheConfiguration reads it as strictly as a kubelet does.
func TestKubeletTakesTheConfiguration(t *testing.T) {
	text, err := os.ReadFile("../../hack/kind/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c cluster
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.Kind != "Cluster" || c.APIVersion != "kind.x-k8s.io/v1alpha4" || len(c.KubeadmConfigPatches) != 1 {
		t.Fatalf("%+v", c)
	}
	if len(c.FeatureGates) > 0 {
		t.Errorf("the API server gets %v as well", c.FeatureGates)
	}
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := codecs.UniversalDecoder().Decode([]byte(c.KubeadmConfigPatches[0]), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := object.(*config.KubeletConfiguration)
	// Validation looks at this machine's cgroups as well, which are not the node's.
	kubelet.FailCgroupV1 = false
	gates := utilfeature.DefaultFeatureGate.DeepCopy()
	if err := gates.SetFromMap(kubelet.FeatureGates); err != nil {
		t.Fatal(err)
	}
	if err := validation.ValidateKubeletConfiguration(kubelet, gates); err != nil {
		t.Error(err)
	}
	thresholds, err := eviction.ParseThresholdConfig(kubelet.EnforceNodeAllocatable, kubelet.EvictionHard, kubelet.EvictionSoft, kubelet.EvictionSoftGracePeriod, kubelet.EvictionMinimumReclaim)
	if err != nil || len(thresholds) == 0 {
		t.Errorf("%v, %v", thresholds, err)
	}
}
