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

import evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

// DefaultEvictionHard is evictionHard where the configuration has none.
var DefaultEvictionHard = map[string]string{
	string(evictionapi.SignalNodeFsInodesFree):  "5%",
	string(evictionapi.SignalNodeFsAvailable):   "10%",
	string(evictionapi.SignalMemoryAvailable):   "100Mi",
	string(evictionapi.SignalImageFsInodesFree): "5%",
	string(evictionapi.SignalImageFsAvailable):  "15%",
}
