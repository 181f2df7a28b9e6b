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

import (
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// calm is up to how much of the time all tasks may have stood still for want of
// memory, in hundredths of a percent, for the kernel's promise to be believed that
// page cache can be given up at no cost. A node that lives on its page cache and has
// enough of it shows a percent or two; where what is dropped is read again at once,
// it is tens of percents. Meta's oomd and systemd-oomd kill from 40 and 60.
const calm = 10_00

// CountReclaimable adds to the memory that is available what the kernel could make
// available besides, while tasks do not stand still for want of memory; where nobody
// knows whether they do, it is not counted. It changes the observations.
func (o Observations) CountReclaimable() {
	stall, known := o[SignalMemoryPressureFull10]
	if !known || !stall.Plausible() || NoStallAtAll-stall.Available > calm {
		return
	}
	for _, signal := range []evictionapi.Signal{evictionapi.SignalMemoryAvailable, evictionapi.SignalAllocatableMemoryAvailable} {
		if memory, found := o[signal]; found && memory.Reclaimable > 0 && memory.Plausible() {
			memory.Available = min(memory.Available+min(memory.Reclaimable, memory.Capacity), memory.Capacity)
			o[signal] = memory
		}
	}
}
