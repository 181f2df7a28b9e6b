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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
)

// plugin builds kubectl-eviction once.
var plugin = sync.OnceValues(func() (string, error) {
	output, err := exec.Command("make", "--no-print-directory", "-C", "../..", "kubectl-eviction").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w:\n%s", err, output)
	}
	return filepath.Join("..", "..", "_output", "bin", "kubectl-eviction"), nil
})

// explained runs kubectl-eviction on what the node's journal says, and returns its output.
func (s sandbox) explained(arguments ...string) string {
	GinkgoHelper()
	program, err := plugin()
	Expect(err).NotTo(HaveOccurred())
	records := filepath.Join(GinkgoT().TempDir(), "eviction.jsonl")
	text := s.run("kubectl", "get", "--raw", "/api/v1/nodes/node1/proxy/logs/kubelet-eviction/eviction.jsonl")
	Expect(os.WriteFile(records, []byte(text), 0o600)).To(Succeed())
	output, err := exec.Command(program, append(arguments, "-f", records)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%v:\n%s", arguments, output)
	return string(output)
}

var _ = Describe("the journal", func() {
	It("is read through the API server, explains the eviction and is replayed, and a restart goes on from it", func() {
		config := "evictionHard: {memory.available: " + roomForMemory(1500) + "}\nevictionPressureTransitionPeriod: 5m\n"
		node.up(config)
		node.create(hog("steady", "memory", "-rate", "50", "-limit", "50"), hog("leak", "memory", "-rate", "150"))
		node.evicted("leak", "The node was low on resource: memory", true)

		By("explaining the eviction")
		Eventually(func() string { return node.explained("explain", "leak") }).WithTimeout(20 * time.Second).WithPolling(2 * time.Second).Should(And(
			ContainSubstring("default/leak was evicted at"),
			ContainSubstring("its containers have ended"),
			ContainSubstring("everything that it held has been given back"),
			MatchRegexp(`1 +default/leak .*<- evicted`),
			MatchRegexp(`2 +default/steady`),
			ContainSubstring("What would have spared it"),
		))
		By("replaying it")
		Expect(node.explained("replay")).To(ContainSubstring("every step decided what is recorded"))

		By("starting the kubelet again")
		node.run("signal", "kubelet", "KILL")
		node.run("start", "kubelet")
		Eventually(func() string { return node.run("logs", "kubelet") }).WithTimeout(30 * time.Second).Should(ContainSubstring("Going on from the journal"))
		Expect(strings.Count(node.explained("explain"), "default/")).To(Equal(1), "the evictions after the restart")
		Expect(node.explained("replay")).To(ContainSubstring("every step decided what is recorded"))
	})
})
