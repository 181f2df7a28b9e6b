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

package observe

import evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

// Probe reads the raw numbers behind signals, so cheaply that it can be asked
// many times a second. What it reads wakes the loop; it never decides. Its
// methods are called from one goroutine.
type Probe interface {
	// Signals lists what the probe reads now. It may grow, as filesystems become
	// known.
	Signals() []evictionapi.Signal
	// Read returns what is available of a signal and its capacity, in the
	// signal's unit, as the summary would count them; Time is ignored. It fails
	// where a number cannot be read now.
	Read(signal evictionapi.Signal) (Observation, error)
}
