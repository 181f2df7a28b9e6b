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
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
	v1 "k8s.io/api/core/v1"
)

// What goes wrong around an eviction: each time the node comes back, the pod
// that had to go goes, and the next one does too.
var _ = Describe("faults", func() {
	// leakAgain shows that the node still takes pods, once its condition has gone,
	// and evicts.
	leakAgain := func() {
		GinkgoHelper()
		tries, name := 0, ""
		Eventually(func() string {
			tries++
			name = fmt.Sprintf("again-%d", tries)
			node.create(hog(name, "memory", "-rate", "100", "-limit", "1700"))
			return node.pod(name).Status.Message
		}).WithTimeout(time.Minute).WithPolling(3 * time.Second).Should(BeEmpty())
		node.evicted(name, "The node was low on resource: memory", true)
	}

	DescribeTable("the kubelet ends in the middle of an eviction", func(signal string) {
		node.up("evictionSoft: {memory.available: " + roomForMemory(1500) + "}\nevictionSoftGracePeriod: {memory.available: 1s}\nevictionMaxPodGracePeriod: 25\nevictionPressureTransitionPeriod: 5s\n")
		node.create(hog("leak", "memory", "-rate", "400", "-limit", "1700", "-linger", "20s"))
		// The pod has had its signal and takes its time.
		Eventually(node.run).WithArguments("logs", "kubelet").WithTimeout(time.Minute).WithPolling(time.Second).Should(ContainSubstring("Killing container with a grace period"))
		node.run("signal", "kubelet", signal)
		time.Sleep(2 * time.Second)
		node.run("start", "kubelet")
		Eventually(func() v1.PodPhase { return node.pod("leak").Status.Phase }).WithTimeout(2 * time.Minute).Should(Equal(v1.PodFailed))
		Eventually(node.condition).WithArguments(v1.NodeReady).WithTimeout(time.Minute).Should(Equal(v1.ConditionTrue))
		leakAgain()
	},
		Entry("told to", "TERM"),
		Entry("killed", "KILL"),
	)

	It("containerd hangs for a while during a kill", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\nevictionPressureTransitionPeriod: 5s\n")
		node.create(hog("leak", "memory", "-rate", "100", "-limit", "1700"))
		// Just before the threshold, so that the kill meets a runtime that hangs.
		Eventually(node.memoryInUse).WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(BeNumerically(">", 1300))
		node.run("signal", "containerd", "STOP")
		time.Sleep(20 * time.Second)
		node.run("signal", "containerd", "CONT")
		node.evicted("leak", "The node was low on resource: memory", true)
		Eventually(node.condition).WithArguments(v1.NodeMemoryPressure).WithTimeout(time.Minute).Should(Equal(v1.ConditionFalse))
		leakAgain()
	})

	It("containerd ends during a kill and comes back", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\nevictionPressureTransitionPeriod: 5s\n")
		node.create(hog("leak", "memory", "-rate", "100", "-limit", "1700"))
		Eventually(node.memoryInUse).WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(BeNumerically(">", 1300))
		node.run("signal", "containerd", "KILL")
		time.Sleep(10 * time.Second)
		node.run("start", "containerd")
		node.evicted("leak", "The node was low on resource: memory", true)
		Eventually(node.condition).WithArguments(v1.NodeMemoryPressure).WithTimeout(time.Minute).Should(Equal(v1.ConditionFalse))
		leakAgain()
	})
})
