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

package rank

import v1 "k8s.io/api/core/v1"

const (
	// configSource is the annotation that tells where the kubelet has a pod
	// from, and fromAPIServer its value for an ordinary pod; every other source
	// makes a pod static (pkg/kubelet/types, Kubernetes v1.37.2).
	configSource  = "kubernetes.io/config.source"
	fromAPIServer = "api"
	// systemCritical is the lowest priority of system-cluster-critical and
	// system-node-critical (pkg/apis/scheduling, Kubernetes v1.37.2).
	systemCritical int32 = 2_000_000_000
)

// Critical says whether a pod must not be evicted: static pods, which nobody
// would start again elsewhere, their mirrors, and pods of system priority.
func Critical(pod *v1.Pod) bool {
	if source, given := pod.Annotations[configSource]; given && source != fromAPIServer {
		return true
	}
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}
