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
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
	v1 "k8s.io/api/core/v1"
)

var _ = Describe("reclaim", func() {
	const disk = 3 << 10 // MiB
	ballast := func() []string {
		GinkgoHelper()
		var there []string
		for _, line := range strings.Split(node.run("crictl", "images"), "\n") {
			if strings.Contains(line, "local/ballast-") {
				there = append(there, strings.Fields(line)[0][len("registry.k8s.io/local/ballast-"):])
			}
		}
		return there
	}
	// freeMiB is what is available on the node's disk.
	freeMiB := func() int {
		GinkgoHelper()
		var mebibytes int
		_, err := fmt.Sscan(node.run("control", "sh", "-c", "df -m --output=avail /var/lib/kubelet | tail -n 1"), &mebibytes)
		Expect(err).NotTo(HaveOccurred())
		return mebibytes
	}

	It("deletes the image that was unused for longest, and no pod goes", func() {
		// Measured once, so that the threshold can be set between two images.
		node.up("", "--ballast", "--disk-size", fmt.Sprint(disk, "M"))
		for _, one := range []string{"2", "3", "1"} {
			node.run("crictl", "pull", "registry.k8s.io/local/ballast-"+one+":1")
			time.Sleep(7 * time.Second) // the kubelet lists images every five seconds or so
		}
		free := freeMiB()
		node.run("signal", "kubelet", "TERM")
		time.Sleep(2 * time.Second)
		// What the steady pod takes is 100 MiB; the threshold is met then, and one
		// image of 80 MiB is enough.
		node.configure(fmt.Sprintf("evictionHard: {nodefs.available: %dMi}\nimageMinimumGCAge: 1s\nvolumeStatsAggPeriod: 5s\n", free-60))
		node.run("start", "kubelet")
		time.Sleep(15 * time.Second)
		node.create(hog("steady", "disk", "-path", "/data", "-rate", "50", "-limit", "100"))
		Eventually(func() int { return len(ballast()) }).WithTimeout(time.Minute).WithPolling(time.Second).Should(BeNumerically("<", 3))
		Consistently(func() int { return len(ballast()) }).WithTimeout(15 * time.Second).WithPolling(time.Second).Should(Equal(2))
		node.running("steady")
		Expect(node.evictedPods()).To(BeEmpty())
	})

	It("deletes the layer of a container that has ended before anything else", func() {
		node.up("evictionHard: {nodefs.available: 50%}\nvolumeStatsAggPeriod: 5s\n", "--ballast", "--disk-size", fmt.Sprint(disk, "M"))
		node.run("crictl", "pull", "registry.k8s.io/local/ballast-1:1")
		ended := hog("ended", "disk")
		ended.Spec.Containers[0].Command = []string{"sh", "-c", "dd if=/dev/zero of=/tmp/file bs=1M count=700"}
		ended.Spec.Containers[0].Args = nil
		node.create(ended)
		Eventually(func() v1.PodPhase { return node.pod("ended").Status.Phase }).WithTimeout(time.Minute).Should(Equal(v1.PodSucceeded))
		before := freeMiB()
		// Over the threshold by a little, which the dead container's layer makes up for.
		node.create(hog("steady", "disk", "-path", "/data", "-rate", "100", "-limit", fmt.Sprint(before-disk/2+250)))
		Eventually(freeMiB).WithTimeout(time.Minute).WithPolling(time.Second).Should(BeNumerically("<", disk/2+400))
		Eventually(func() string { return node.run("crictl", "ps", "--all") }).WithTimeout(time.Minute).WithPolling(time.Second).ShouldNot(ContainSubstring("Exited"))
		time.Sleep(5 * time.Second)
		node.running("steady")
		Expect(ballast()).To(Equal([]string{"1"}))
	})

	It("deletes an image of many files when inodes run short", func() {
		// The node's disk has 1.5 million inodes, the image 100 thousand of them.
		node.up("evictionHard: {nodefs.inodesFree: \"1450000\"}\nimageMinimumGCAge: 1s\n", "--ballast")
		node.create(hog("steady", "inodes", "-path", "/data", "-limit", "1000", "-rate", "1000"))
		node.run("crictl", "pull", "registry.k8s.io/local/files:1")
		Eventually(func() string { return node.run("crictl", "images") }).WithTimeout(2 * time.Minute).WithPolling(time.Second).ShouldNot(ContainSubstring("local/files"))
		time.Sleep(5 * time.Second)
		node.running("steady")
		Expect(node.evictedPods()).To(BeEmpty())
	})
})
