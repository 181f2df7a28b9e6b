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
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in every ginkgo suite
	. "github.com/onsi/gomega"    //nolint:staticcheck // as in every ginkgo suite
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNode runs the specs against a sandboxed node. They take root and minutes,
// so they run when asked for by name: make test-e2e.
func TestNode(t *testing.T) {
	if os.Getenv("EVICTION_E2E") == "" {
		t.Skip("SKIP: needs root and a node of its own; run make test-e2e")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "eviction on a real node")
}

// sandbox is the node of this suite.
type sandbox struct{ name string }

var node = sandbox{name: "e2e"}

func (s sandbox) command(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join("..", "..", "hack", "node"), append([]string{"-n", s.name}, args...)...)
}

// run returns what a command of hack/node prints; it must succeed.
func (s sandbox) run(args ...string) string {
	GinkgoHelper()
	output, err := s.command(args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "hack/node %v:\n%s", args, output)
	return string(output)
}

// up starts the node with a kubelet configuration, which is merged over its own.
func (s sandbox) up(config string, flags ...string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "kubelet.yaml")
	config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + config
	Expect(os.WriteFile(file, []byte(config), 0o600)).To(Succeed())
	if kubelet := os.Getenv("EVICTION_E2E_KUBELET"); kubelet != "" {
		flags = append(flags, "--kubelet", kubelet)
	}
	By("bringing the node up with " + strings.Join(strings.Fields(config), " "))
	s.run(append([]string{"up", "--config", file}, flags...)...)
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			AddReportEntry("kubelet.log", tail(s.run("logs", "kubelet"), 200))
		}
		s.run("down")
	})
}

// configure puts another configuration in the place of the user's part; the
// kubelet has it when it starts again.
func (s sandbox) configure(config string) {
	GinkgoHelper()
	file := filepath.Join("..", "..", "_output", "node", "run", s.name, "kubelet.conf.d", "50-user.conf")
	config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + config
	Expect(os.WriteFile(file, []byte(config), 0o600)).To(Succeed())
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// roomForMemory is a threshold on memory.available that is met when the node
// uses that many MiB: the kubelet takes the whole machine's memory for its own.
func roomForMemory(mebibytes int64) string {
	GinkgoHelper()
	info, err := os.ReadFile("/proc/meminfo")
	Expect(err).NotTo(HaveOccurred())
	total := regexp.MustCompile(`MemTotal: *(\d+) kB`).FindSubmatch(info)
	kibibytes, err := strconv.ParseInt(string(total[1]), 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%dMi", kibibytes/1024-mebibytes)
}

// roomForProcesses is a threshold on pid.available that is met when there are
// that many threads more than now: the kubelet counts the whole machine's.
func roomForProcesses(threads int64) string {
	GinkgoHelper()
	// In a namespace as the node's: since Linux 6.14 each has its own pid_max.
	text, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "cat", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/proc/loadavg").Output()
	Expect(err).NotTo(HaveOccurred())
	var pidMax, threadsMax, running, all int64
	var minute, five, fifteen float64
	_, err = fmt.Sscanf(string(text), "%d\n%d\n%g %g %g %d/%d", &pidMax, &threadsMax, &minute, &five, &fifteen, &running, &all)
	Expect(err).NotTo(HaveOccurred(), "%s", text)
	return strconv.FormatInt(min(pidMax, threadsMax)-all-threads, 10)
}

// memoryInUse is what the node uses, in MiB, as the kubelet counts it.
func (s sandbox) memoryInUse() int64 {
	GinkgoHelper()
	available, err := strconv.ParseInt(strings.TrimSpace(s.run("available")), 10, 64)
	Expect(err).NotTo(HaveOccurred())
	info, err := os.ReadFile("/proc/meminfo")
	Expect(err).NotTo(HaveOccurred())
	total := regexp.MustCompile(`MemTotal: *(\d+) kB`).FindSubmatch(info)
	kibibytes, err := strconv.ParseInt(string(total[1]), 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return kibibytes>>10 - available>>20
}

// write puts an object into a file of the node.
func (s sandbox) write(file string, object any) {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	command := s.command("control", "sh", "-c", `mkdir -p "${0%/*}" && cat > "$0"`, file)
	command.Stdin = bytes.NewReader(text)
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
}

// evictedPods lists the names of the pods in the default namespace that were evicted.
func (s sandbox) evictedPods() []string {
	GinkgoHelper()
	var pods v1.PodList
	s.get(&pods, "pods")
	var names []string
	for _, pod := range pods.Items {
		if pod.Status.Reason == "Evicted" {
			names = append(names, pod.Name)
		}
	}
	return names
}

// hog makes a pod that runs the hog program.
func hog(name string, args ...string) *v1.Pod {
	none := false
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{
			NodeName: "node1", RestartPolicy: v1.RestartPolicyNever, AutomountServiceAccountToken: &none,
			Containers: []v1.Container{{
				Name: "hog", Image: "registry.k8s.io/local/hog:1", Args: args,
				VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	}
}

// with changes a pod before it is made.
func with(pod *v1.Pod, change func(*v1.PodSpec)) *v1.Pod {
	change(&pod.Spec)
	return pod
}

func requests(pod *v1.Pod, name v1.ResourceName, quantity string) *v1.Pod {
	return with(pod, func(spec *v1.PodSpec) {
		spec.Containers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse(quantity)}
	})
}

// create makes pods in the default namespace and waits until they have started.
func (s sandbox) create(pods ...*v1.Pod) {
	GinkgoHelper()
	s.createIn("default", pods...)
}

func (s sandbox) createIn(namespace string, pods ...*v1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		text, err := json.Marshal(pod)
		Expect(err).NotTo(HaveOccurred())
		command := s.command("kubectl", "create", "-f", "-")
		command.Stdin = bytes.NewReader(text)
		output, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
	}
	for _, pod := range pods {
		Eventually(func() v1.PodPhase {
			var now v1.Pod
			s.get(&now, "pod", "-n", namespace, pod.Name)
			return now.Status.Phase
		}).WithTimeout(time.Minute).WithPolling(300*time.Millisecond).ShouldNot(Equal(v1.PodPending), "pod %s did not start", pod.Name)
	}
}

// get reads an object.
func (s sandbox) get(into any, args ...string) {
	GinkgoHelper()
	output, err := s.command(append([]string{"kubectl", "get", "-o", "json"}, args...)...).Output()
	Expect(err).NotTo(HaveOccurred(), "kubectl get %v", args)
	Expect(json.Unmarshal(output, into)).To(Succeed())
}

func (s sandbox) pod(name string) v1.Pod {
	GinkgoHelper()
	var pod v1.Pod
	s.get(&pod, "pod", name)
	return pod
}

// condition returns the status of a node condition.
func (s sandbox) condition(name v1.NodeConditionType) v1.ConditionStatus {
	GinkgoHelper()
	var n v1.Node
	s.get(&n, "node", "node1")
	for _, condition := range n.Status.Conditions {
		if condition.Type == name {
			return condition.Status
		}
	}
	return v1.ConditionUnknown
}

// evictions returns kubelet_evictions by signal, as the kubelet serves it.
func (s sandbox) evictions() map[string]float64 {
	GinkgoHelper()
	counts := map[string]float64{}
	metrics := s.run("kubectl", "get", "--raw", "/api/v1/nodes/node1/proxy/metrics")
	for _, match := range regexp.MustCompile(`(?m)^kubelet_evictions\{eviction_signal="([^"]+)"\} (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		count, err := strconv.ParseFloat(match[2], 64)
		Expect(err).NotTo(HaveOccurred())
		if count > 0 { // each signal is there from the start
			counts[match[1]] = count
		}
	}
	return counts
}

// evicted waits until a pod is evicted, and checks everything that tells so:
// status, event, and, for the node's sake, the pod's condition.
func (s sandbox) evicted(name, words string, forTheNode bool) {
	GinkgoHelper()
	Eventually(func() string {
		status := s.pod(name).Status
		return fmt.Sprintf("%s %s", status.Phase, status.Reason)
	}).WithTimeout(3*time.Minute).WithPolling(500*time.Millisecond).Should(Equal("Failed Evicted"), "pod %s", name)
	status := s.pod(name).Status
	Expect(status.Message).To(ContainSubstring(words))
	var events v1.EventList
	Eventually(func() []v1.Event {
		s.get(&events, "events", "--field-selector", "reason=Evicted,involvedObject.name="+name)
		return events.Items
	}).WithTimeout(20 * time.Second).WithPolling(500 * time.Millisecond).ShouldNot(BeEmpty())
	Expect(events.Items[0].Message).To(ContainSubstring(words))
	disrupted := false
	for _, condition := range status.Conditions {
		disrupted = disrupted || condition.Type == v1.DisruptionTarget && condition.Reason == v1.PodReasonTerminationByKubelet
	}
	Expect(disrupted).To(Equal(forTheNode), "condition DisruptionTarget: %+v", status.Conditions)
}

// firstEvicted returns the name of the pod that the first eviction's event is about.
func (s sandbox) firstEvicted() string {
	GinkgoHelper()
	var events v1.EventList
	s.get(&events, "events", "--field-selector", "reason=Evicted")
	Expect(events.Items).NotTo(BeEmpty())
	// Resource versions of one etcd grow with every write.
	first := slices.MinFunc(events.Items, func(a, b v1.Event) int {
		return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	return first.InvolvedObject.Name
}

// running checks that a pod still runs.
func (s sandbox) running(name string) {
	GinkgoHelper()
	Expect(s.pod(name).Status.Phase).To(Equal(v1.PodRunning), "pod %s", name)
}
