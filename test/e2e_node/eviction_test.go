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

// Package e2enode evicts real pods on a real node: one that hack/node makes on
// this machine, with this project's kubelet.
package e2enode

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var _ = Describe("memory", func() {
	It("evicts the pod above its request first, and then takes pods again", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\nevictionPressureTransitionPeriod: 10s\n")
		node.create(
			requests(hog("within", "memory", "-rate", "100", "-limit", "300"), v1.ResourceMemory, "400Mi"),
			hog("leak", "memory", "-rate", "150"),
		)
		node.evicted("leak", "The node was low on resource: memory", true)
		Eventually(node.condition).WithArguments(v1.NodeMemoryPressure).WithTimeout(30 * time.Second).Should(Equal(v1.ConditionTrue))
		// Others might go after it: the stats of the next pass may be from before
		// the kill, as upstream's manager has them too.
		Expect(node.firstEvicted()).To(Equal("leak"))
		// The kubelet guards the pods' cgroup by the same threshold, and upstream
		// takes either of the two.
		Expect(node.evictions()).To(Or(HaveKey("memory.available"), HaveKey("allocatableMemory.available")))

		By("refusing a BestEffort pod while the condition lasts")
		node.create(hog("late", "memory", "-limit", "1"))
		Eventually(func() string { return node.pod("late").Status.Reason }).WithTimeout(20 * time.Second).Should(Equal("Evicted"))

		By("taking one when it has gone")
		Eventually(node.condition).WithArguments(v1.NodeMemoryPressure).WithTimeout(time.Minute).Should(Equal(v1.ConditionFalse))
		node.create(hog("later", "memory", "-limit", "1"))
		node.running("later")
	})

	It("spares critical pods", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\n")
		critical := hog("critical", "memory", "-rate", "400", "-limit", "1700")
		critical.Namespace = "kube-system"
		critical.Spec.PriorityClassName = "system-node-critical"
		node.create(hog("small", "memory", "-limit", "10", "-rate", "10"))
		node.createIn("kube-system", critical)
		node.evicted("small", "The node was low on resource: memory", true)
		var pod v1.Pod
		node.get(&pod, "pod", "-n", "kube-system", "critical")
		Expect(pod.Status.Phase).To(Equal(v1.PodRunning))
	})

	It("spares static pods", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\nstaticPodPath: /etc/kubernetes/manifests\nfileCheckFrequency: 1s\n")
		static := hog("static", "memory", "-rate", "400", "-limit", "1700")
		static.Spec.NodeName = ""
		node.create(hog("small", "memory", "-limit", "10", "-rate", "10"))
		node.write("/etc/kubernetes/manifests/static.yaml", static)
		node.evicted("small", "The node was low on resource: memory", true)
		node.running("static-node1")
	})

	It("evicts the pod of lower priority though it uses less", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\n")
		node.run("kubectl", "create", "priorityclass", "important", "--value=1000")
		// So slow that both have stats before the threshold is met: upstream puts a
		// pod without any before all others.
		node.create(
			with(hog("important", "memory", "-rate", "35", "-limit", "1000"), func(spec *v1.PodSpec) { spec.PriorityClassName = "important" }),
			hog("other", "memory", "-rate", "20", "-limit", "600"),
		)
		node.evicted("other", "The node was low on resource: memory", true)
		node.running("important")
	})

	It("frees the minimum that is asked for, not just what lifts the threshold", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\nevictionMinimumReclaim: {memory.available: 400Mi}\n")
		var pods []*v1.Pod
		for i := range 5 {
			pods = append(pods, hog(fmt.Sprintf("pod-%d", i), "memory", "-rate", "100", "-limit", "260"))
		}
		node.create(pods...)
		time.Sleep(5 * time.Second)
		node.create(hog("last", "memory", "-rate", "20", "-limit", "200"))
		// One pod lifts the threshold, and its 260 MiB are less than is asked for.
		Eventually(node.evictedPods).WithTimeout(2 * time.Minute).Should(HaveLen(2))
		Eventually(node.memoryInUse).WithTimeout(20 * time.Second).Should(BeNumerically("<", 1500-400))
		Consistently(node.evictedPods).WithTimeout(15 * time.Second).WithPolling(time.Second).Should(HaveLen(2))
	})

	It("guards what pods may have by allocatableMemory.available", func() {
		node.up("kubeReserved: {memory: " + roomForMemory(300) + "}\nevictionHard: {memory.available: 150Mi}\n")
		node.create(hog("leak", "memory", "-rate", "8", "-limit", "220"))
		node.evicted("leak", "The node was low on resource: memory", true)
		Expect(node.evictions()).To(HaveKey("allocatableMemory.available"))
	})

	It("leaves an evicted pod failed though it exits 0", func() {
		node.up("evictionHard: {memory.available: " + roomForMemory(1500) + "}\n")
		node.create(hog("leak", "memory", "-rate", "150", "-exit", "0"))
		node.evicted("leak", "The node was low on resource: memory", true)
	})

	It("waits for a soft threshold's grace period", func() {
		soft := roomForMemory(1500)
		node.up("evictionSoft: {memory.available: " + soft + "}\nevictionSoftGracePeriod: {memory.available: 25s}\nevictionMaxPodGracePeriod: 5\n")
		begin := time.Now()
		node.create(hog("leak", "memory", "-rate", "400", "-limit", "1700"))
		node.evicted("leak", "The node was low on resource: memory", true)
		Expect(time.Since(begin)).To(BeNumerically(">=", 25*time.Second))
	})
})

var _ = Describe("processes", func() {
	It("evicts the pod that takes the process IDs", func() {
		node.up("evictionHard: {pid.available: \"" + roomForProcesses(1500) + "\"}\n")
		// Each process of the hog has several threads, and threads are what counts.
		node.create(hog("steady", "pids", "-limit", "2"), hog("bomb", "pids", "-rate", "40", "-limit", "700"))
		node.evicted("bomb", "The node was low on resource: pids", true)
		Eventually(node.condition).WithArguments(v1.NodePIDPressure).WithTimeout(30 * time.Second).Should(Equal(v1.ConditionTrue))
		Expect(node.firstEvicted()).To(Equal("bomb"))
		Expect(node.evictions()).To(HaveKey("pid.available"))
	})
})

var _ = Describe("disk", func() {
	It("evicts the pod that fills nodefs with an emptyDir", func() {
		// Upstream ranks by what it last measured of each volume, once a minute by
		// default; a disk that fills faster is blamed on anybody.
		node.up("evictionHard: {nodefs.available: 80%}\nvolumeStatsAggPeriod: 5s\n")
		node.create(hog("steady", "disk", "-path", "/data", "-limit", "50"), hog("filler", "disk", "-path", "/data", "-rate", "50", "-limit", "6000"))
		node.evicted("filler", "The node was low on resource: ephemeral-storage", true)
		Expect(node.firstEvicted()).To(Equal("filler"))
		Expect(node.evictions()).To(Or(HaveKey("nodefs.available"), HaveKey("containerfs.available")))
	})

	It("evicts the pod that takes the inodes", func() {
		node.up("evictionHard: {nodefs.inodesFree: 95%}\n")
		// Only the filler is looked at: upstream's manager may take another pod
		// before the filler's inodes are back.
		node.create(hog("filler", "inodes", "-path", "/data", "-rate", "5000", "-limit", "150000"))
		node.evicted("filler", "The node was low on resource: inodes", true)
	})

	It("evicts the pod that fills a separate imagefs with its writable layer", func() {
		node.up("evictionHard: {imagefs.available: 80%}\n", "--disk", "imagefs")
		node.create(hog("filler", "disk", "-path", "/tmp", "-rate", "100", "-limit", "5000"))
		node.evicted("filler", "The node was low on resource: ephemeral-storage", true)
	})

	It("survives a disk that is full to the last byte", func() {
		node.up("evictionHard: {nodefs.available: 500Mi}\nvolumeStatsAggPeriod: 5s\nevictionPressureTransitionPeriod: 10s\n", "--disk-size", "3G")
		node.create(hog("filler", "disk", "-path", "/data", "-rate", "800", "-limit", "100000"))
		Eventually(node.condition).WithArguments(v1.NodeDiskPressure).WithTimeout(time.Minute).Should(Equal(v1.ConditionTrue))
		node.evicted("filler", "The node was low on resource: ephemeral-storage", true)
		Eventually(node.condition).WithArguments(v1.NodeDiskPressure).WithTimeout(2 * time.Minute).Should(Equal(v1.ConditionFalse))
		node.create(hog("later", "memory", "-limit", "1"))
		node.running("later")
	})

	It("evicts the pod whose emptyDir is larger than its limit, and no other", func() {
		node.up("")
		limit := resource.MustParse("50Mi")
		limited := func(name, use string) *v1.Pod {
			return with(hog(name, "disk", "-path", "/data", "-limit", use), func(spec *v1.PodSpec) { spec.Volumes[0].EmptyDir.SizeLimit = &limit })
		}
		node.create(limited("above", "100"), limited("below", "20"))
		node.evicted("above", `Usage of EmptyDir volume "data" exceeds the limit "50Mi"`, false)
		node.running("below")
		Expect(node.evictions()).To(HaveKeyWithValue("emptydirfs.limit", 1.0))
	})

	It("evicts the pod that exceeds its limit of ephemeral storage", func() {
		node.up("")
		node.create(with(hog("above", "disk", "-limit", "100"), func(spec *v1.PodSpec) {
			spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("50Mi")}
		}))
		node.evicted("above", "ephemeral", false)
	})
})
