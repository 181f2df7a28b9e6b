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

package simnode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// Pressure is what a manager says of the node.
type Pressure interface {
	IsUnderMemoryPressure() bool
	IsUnderDiskPressure() bool
	IsUnderPIDPressure() bool
}

// sampleEvery and sampleAt place the samples where no manager and no kill of a
// node acts, since those do so at whole milliseconds.
const (
	sampleEvery = time.Second
	sampleAt    = 500 * time.Microsecond
)

// arrivals are pods that might come to the node, one for each rule of admission.
var arrivals = func() []*v1.Pod {
	critical := int32(2_000_000_000)
	pod := func(name string, spec v1.PodSpec) *v1.Pod {
		if len(spec.Containers) == 0 {
			spec.Containers = []v1.Container{{Name: "a"}}
		}
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return []*v1.Pod{
		pod("best-effort", v1.PodSpec{}),
		pod("tolerant", v1.PodSpec{Tolerations: []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists}}}),
		pod("burstable", v1.PodSpec{Containers: []v1.Container{{Name: "a", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}}}),
		pod("critical", v1.PodSpec{Priority: &critical}),
	}
}()

// Watch notes every change of the node's conditions, of what it admits, and of
// what counted says, until the context ends.
func (n *Node) Watch(ctx context.Context, manager Pressure, handler lifecycle.PodAdmitHandler, counted func() string) {
	last, lastCounted, lastActs := Standing(false, false, false, nil, "", ""), "", 0
	n.timeline.Sleep(sampleAt)
	for ctx.Err() == nil {
		if acts := n.actsSoFar(); acts != lastActs {
			if now := counted(); now != lastCounted {
				n.Note("counted %s", now)
				lastCounted = now
			}
			lastActs = n.actsSoFar()
		}
		if now := n.sample(ctx, manager, handler); now != last {
			n.Note("%s", now)
			last = now
		}
		n.timeline.Sleep(sampleEvery)
	}
}

func (n *Node) actsSoFar() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acts
}

func (n *Node) sample(ctx context.Context, manager Pressure, handler lifecycle.PodAdmitHandler) string {
	var refused []string
	var why lifecycle.PodAdmitResult
	for _, pod := range arrivals {
		if result := Admit(ctx, handler, pod); !result.Admit {
			refused = append(refused, pod.Name)
			why = result
		}
	}
	return Standing(manager.IsUnderMemoryPressure(), manager.IsUnderDiskPressure(), manager.IsUnderPIDPressure(), refused, why.Reason, why.Message)
}

// Standing writes a node's conditions and whom it refuses.
func Standing(memory, disk, pid bool, refused []string, reason, message string) string {
	var conditions []string
	for _, c := range []struct {
		holds bool
		name  v1.NodeConditionType
	}{{memory, v1.NodeMemoryPressure}, {disk, v1.NodeDiskPressure}, {pid, v1.NodePIDPressure}} {
		if c.holds {
			conditions = append(conditions, string(c.name))
		}
	}
	line := "conditions: none"
	if len(conditions) > 0 {
		line = "conditions: " + strings.Join(conditions, " ")
	}
	if len(refused) > 0 {
		line += fmt.Sprintf("; refuses %s (%s: %s)", strings.Join(refused, " "), reason, ordered(message))
	}
	return line
}

// ordered sorts the list in brackets: upstream's has the order of a map.
func ordered(message string) string {
	from, to := strings.IndexByte(message, '['), strings.IndexByte(message, ']')
	if from < 0 || to < from {
		return message
	}
	words := strings.Fields(message[from+1 : to])
	slices.Sort(words)
	return message[:from+1] + strings.Join(words, " ") + message[to:]
}
