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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
)

var _ = Describe("sandbox", func() {
	// remains lists what is left of a node: cgroups, mounts, loop devices,
	// processes and its folder.
	remains := func(s sandbox) []string {
		GinkgoHelper()
		var left []string
		groups, err := filepath.Glob("/sys/fs/cgroup/*/eviction-" + s.name)
		Expect(err).NotTo(HaveOccurred())
		left = append(left, groups...)
		if _, err := os.Stat("/sys/fs/cgroup/eviction-" + s.name); err == nil {
			left = append(left, "/sys/fs/cgroup/eviction-"+s.name) // cgroup v2
		}
		folder := filepath.Join("_output", "node", "run", s.name)
		mounts, err := os.ReadFile("/proc/mounts")
		Expect(err).NotTo(HaveOccurred())
		loops, err := exec.Command("losetup", "--list", "--noheadings", "--output", "BACK-FILE").Output()
		Expect(err).NotTo(HaveOccurred())
		for _, line := range strings.Split(string(mounts)+string(loops), "\n") {
			if strings.Contains(line, folder) {
				left = append(left, line)
			}
		}
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		Expect(err).NotTo(HaveOccurred())
		for _, command := range commands {
			if line, err := os.ReadFile(command); err == nil && strings.Contains(string(line), folder) {
				left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		if _, err := os.Stat(filepath.Join("..", "..", folder)); err == nil {
			left = append(left, folder)
		}
		return left
	}

	DescribeTable("leaves nothing when up is killed", func(after time.Duration) {
		s := sandbox{name: "killed"}
		up := s.command("up")
		up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		Expect(up.Start()).To(Succeed())
		time.Sleep(after)
		Expect(syscall.Kill(-up.Process.Pid, syscall.SIGKILL)).To(Succeed())
		_ = up.Wait() // it was killed
		s.run("down")
		Eventually(remains).WithArguments(s).WithTimeout(10 * time.Second).Should(BeEmpty())
	},
		Entry("while it makes disks", 200*time.Millisecond),
		Entry("while the cluster starts", 1500*time.Millisecond),
		Entry("while the kubelet starts", 3500*time.Millisecond),
	)

	It("replaces a node by another of its name, and stands beside others", func() {
		node.up("")
		other := sandbox{name: "other"}
		DeferCleanup(func() { other.run("down") })
		other.run("up")
		node.up("maxPods: 17\n")
		other.run("status")
		Expect(node.run("kubectl", "get", "node", "node1", "-o", "jsonpath={.status.capacity.pods}")).To(Equal("17"))
	})
})
