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

package e2enode

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

var _ = Describe("in time", func() {
	It("reads with its probe what the summary says", func() {
		// Below the checkout, which the node sees.
		folder, err := filepath.Abs(filepath.Join("..", "..", "_output"))
		Expect(err).NotTo(HaveOccurred())
		program := filepath.Join(folder, "readprobe")
		build := exec.Command("go", "build", "-o", program, "./readprobe")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		output, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)

		node.up("")
		node.create(hog("steady", "memory", "-limit", "500", "-rate", "500"), hog("files", "disk", "-path", "/data", "-limit", "500", "-rate", "500"))
		// The summary that others are given is up to 20 s old.
		Eventually(func(g Gomega) {
			var summary statsapi.Summary
			g.Expect(json.Unmarshal([]byte(node.run("kubectl", "get", "--raw", "/api/v1/nodes/node1/proxy/stats/summary")), &summary)).To(Succeed())
			probed := observe.Observations{}
			g.Expect(json.Unmarshal([]byte(node.run("exec", program)), &probed)).To(Succeed())
			says := observe.FromSummary(&summary, observe.MemorySource{}).Observations
			g.Expect(says[evictionapi.SignalMemoryAvailable].Capacity - says[evictionapi.SignalMemoryAvailable].Available).To(BeNumerically(">", 500<<20))
			for _, signal := range []evictionapi.Signal{
				evictionapi.SignalMemoryAvailable, evictionapi.SignalAllocatableMemoryAvailable,
				evictionapi.SignalNodeFsAvailable, evictionapi.SignalNodeFsInodesFree, evictionapi.SignalPIDAvailable,
			} {
				g.Expect(says).To(HaveKey(signal))
				g.Expect(probed).To(HaveKey(signal))
				g.Expect(probed[signal].Available).To(BeNumerically("~", says[signal].Available, float64(says[signal].Capacity)/100), string(signal))
				g.Expect(probed[signal].Capacity).To(BeNumerically("~", says[signal].Capacity, float64(says[signal].Capacity)/100), string(signal))
			}
		}).WithTimeout(time.Minute).WithPolling(2 * time.Second).Should(Succeed())
	})

	It("evicts a fast leak before a second has passed", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\n")
		// At 600 MiB/s the guard of the node is 18 s away, and upstream's next look
		// up to 10 s.
		node.create(hog("leak", "memory", "-rate", "600", "-limit", "9000"))
		most := int64(0)
		Eventually(func() v1.PodPhase {
			most = max(most, node.memoryInUse())
			return node.pod("leak").Status.Phase
		}).WithTimeout(time.Minute).WithPolling(50 * time.Millisecond).Should(Equal(v1.PodFailed))
		node.evicted("leak", "The node was low on resource: memory", true)
		Expect(most).To(BeNumerically("<", 1500+900))
	})
})
