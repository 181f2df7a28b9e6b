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

package eviction

import (
	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// CgroupNotifierFactory makes notifiers of the kernel's own events.
type CgroupNotifierFactory struct{}

var _ NotifierFactory = &CgroupNotifierFactory{}

// NewCgroupNotifier makes one; see the function of that name.
func (*CgroupNotifierFactory) NewCgroupNotifier(logger klog.Logger, path, attribute string, threshold int64) (CgroupNotifier, error) {
	return NewCgroupNotifier(logger, path, attribute, threshold)
}

// NewCgroupNotifier returns a notifier that sends an event whenever attribute
// of the cgroup at path crosses threshold in either direction. On cgroup v2 and
// where there are no cgroups, it never sends.
func NewCgroupNotifier(logger klog.Logger, path, attribute string, threshold int64) (CgroupNotifier, error) {
	return wake.NewMemcgNotifier(path, attribute, threshold)
}

// NewMemoryThresholdNotifier returns a notifier that calls handler when the
// memory threshold is crossed: on Linux by events of the node's memory cgroup,
// or of the pods' cgroup cgroupRoot for allocatable memory; on Windows by
// looking at the commit limit. UpdateThreshold must be called once before it
// watches anything.
func NewMemoryThresholdNotifier(logger klog.Logger, threshold evictionapi.Threshold, cgroupRoot string, factory NotifierFactory, handler func(string)) (ThresholdNotifier, error) {
	notifier, err := wake.NewMemoryThreshold(logger, threshold, cgroupRoot, factoryOf(factory), handler)
	if err != nil {
		return nil, err
	}
	return notifier, nil
}

func factoryOf(factory NotifierFactory) wake.Factory {
	return func(logger klog.Logger, path, attribute string, value int64) (wake.Notifier, error) {
		return factory.NewCgroupNotifier(logger, path, attribute, value)
	}
}
