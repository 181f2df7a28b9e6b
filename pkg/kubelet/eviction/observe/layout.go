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

// Layout says how the node's filesystems are divided (KEP-4191). The zero value
// is one filesystem for everything.
type Layout struct {
	// DedicatedImageFs: images lie on another filesystem than nodefs.
	DedicatedImageFs bool
	// SeparateContainerFs: writable layers lie on another filesystem than images.
	SeparateContainerFs bool
	// Unsupported: the container filesystem is separate while upstream's gate
	// KubeletSeparateDiskGC is off. Thresholds still raise conditions and
	// events, but nothing is reclaimed and no pod is evicted for a signal, as
	// upstream does it (v1.37.2).
	Unsupported bool
}
