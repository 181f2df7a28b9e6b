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

package rank

import (
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// total adds up one resource over a pod's containers as the API defines it
// (KEP-753): the sum of containers and sidecars, or the most that any moment of
// the initialisation takes, whichever is more. It computes for one resource
// what component-helpers computes for all of them, since building lists of
// resources is most of what a pass over thousands of pods costs.
type total struct {
	amount observe.Amount
	// given says whether any container names the resource at all.
	given bool
}

func (t *total) add(list v1.ResourceList, name v1.ResourceName) {
	if quantity, given := list[name]; given {
		t.amount = t.amount.Add(observe.AmountOf(&quantity))
		t.given = true
	}
}

func (t *total) raiseTo(other total) {
	if other.given && (!t.given || other.amount.Cmp(t.amount) > 0) {
		*t = other
	}
}

// side is the list of a container's resources that is added up.
type side bool

const (
	requests side = false
	limits   side = true
)

func (s side) of(container *v1.Container) v1.ResourceList {
	if s == limits {
		return container.Resources.Limits
	}
	return container.Resources.Requests
}

// containerTotal adds up one side of each container.
func containerTotal(pod *v1.Pod, name v1.ResourceName, side side) total {
	var sum total
	for i := range pod.Spec.Containers {
		sum.add(side.of(&pod.Spec.Containers[i]), name)
	}
	var sidecars, initialising total
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		resources := side.of(container)
		if Restartable(container) {
			sum.add(resources, name)
			sidecars.add(resources, name)
			initialising.raiseTo(sidecars)
			continue
		}
		moment := sidecars
		moment.add(resources, name)
		initialising.raiseTo(moment)
	}
	sum.raiseTo(initialising)
	return sum
}

// Restartable says whether an init container is a sidecar: it goes on running
// beside the containers.
func Restartable(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// Request returns how much of a resource a pod requests, as upstream's ranking
// counts it (GetResourceRequestQuantity, Kubernetes v1.37.2): pod-level
// requests instead of the containers' while upstream's gate PodLevelResources
// is on, and the pod's overhead on top of anything but nothing.
func Request(pod *v1.Pod, name v1.ResourceName, podLevelResources bool) observe.Amount {
	var sum total
	if !podLevelResources || !resourcehelper.IsPodLevelResourcesSet(pod) {
		sum = containerTotal(pod, name, requests)
	}
	if pod.Spec.Resources != nil && resourcehelper.IsSupportedPodLevelResource(name) {
		if quantity, given := pod.Spec.Resources.Requests[name]; given {
			sum = total{amount: observe.AmountOf(&quantity), given: true}
		}
	}
	if overhead, given := pod.Spec.Overhead[name]; given && !sum.amount.IsZero() {
		sum.amount = sum.amount.Add(observe.AmountOf(&overhead))
	}
	return sum.amount
}

// EphemeralStorageLimit returns a pod's limit of ephemeral storage, and whether
// any of its containers sets one.
func EphemeralStorageLimit(pod *v1.Pod) (observe.Amount, bool) {
	sum := containerTotal(pod, v1.ResourceEphemeralStorage, limits)
	if overhead, given := pod.Spec.Overhead[v1.ResourceEphemeralStorage]; given && !sum.amount.IsZero() {
		sum.amount = sum.amount.Add(observe.AmountOf(&overhead))
	}
	return sum.amount, sum.given
}
