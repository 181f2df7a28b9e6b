//go:build windows

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

import statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

// PlatformMemory is where this platform's summaries keep the node's memory. On
// Windows what runs out first is the commit limit, so memory.available is the
// commit charge that is left (upstream since v1.31).
var PlatformMemory = MemorySource{
	SystemContainer: statsapi.SystemContainerWindowsGlobalCommitMemory,
	UsedIsUsage:     true,
}
