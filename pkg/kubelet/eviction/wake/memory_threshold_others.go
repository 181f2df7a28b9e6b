//go:build !windows

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

package wake

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// MemoryThreshold calls a handler when the kernel reports that a memory cgroup
// crossed an eviction threshold. UpdateThreshold must be called once before
// anything is watched.
type MemoryThreshold struct {
	threshold  evictionapi.Threshold
	cgroupPath string
	factory    Factory
	handler    func(string)
	crossed    chan struct{}

	// mu guards notifier: passes may update the threshold side by side.
	mu       sync.Mutex
	notifier Notifier
}

// NewMemoryThreshold watches the node's memory cgroup for a threshold on
// memory.available, and the pods' cgroup at podsRoot below it for one on
// allocatableMemory.available.
func NewMemoryThreshold(_ klog.Logger, t evictionapi.Threshold, podsRoot string, factory Factory, handler func(string)) (*MemoryThreshold, error) {
	subsystems, err := cm.GetCgroupSubsystems()
	if err != nil {
		return nil, fmt.Errorf("finding the memory cgroup: %w", err)
	}
	path := subsystems.MountPoints["memory"]
	if path == "" {
		return nil, errors.New("finding the memory cgroup: it is not mounted")
	}
	if allocatable(t) {
		path += podsRoot
	}
	return MemoryThresholdAt(t, path, factory, handler), nil
}

// MemoryThresholdAt watches the memory cgroup at a path.
func MemoryThresholdAt(t evictionapi.Threshold, path string, factory Factory, handler func(string)) *MemoryThreshold {
	return &MemoryThreshold{threshold: t, cgroupPath: path, factory: factory, handler: handler, crossed: make(chan struct{})}
}

// Start calls the handler for each crossing until the context ends.
func (m *MemoryThreshold) Start(ctx context.Context) {
	klog.FromContext(ctx).Info("Watching for crossings", "notifier", m.Description(), "cgroup", m.cgroupPath)
	for {
		select {
		case <-ctx.Done():
			m.replace(nil)
			return
		case <-m.crossed:
			m.handler(crossedMessage(m.threshold))
		}
	}
}

// UpdateThreshold moves the value that is watched. The kernel compares usage,
// which has inactive page cache in it, while the threshold is on capacity less
// working set: so the value is capacity less threshold plus inactive page cache
// as the summary has it.
func (m *MemoryThreshold) UpdateThreshold(ctx context.Context, summary *statsapi.Summary) error {
	memory := summary.Node.Memory
	if allocatable(m.threshold) {
		memory = observe.SystemMemory(summary, statsapi.SystemContainerPods)
	}
	if memory == nil || memory.UsageBytes == nil || memory.WorkingSetBytes == nil || memory.AvailableBytes == nil {
		return fmt.Errorf("%s: the summary lacks memory usage, working set or available bytes", m.Description())
	}
	inactive := int64(*memory.UsageBytes - *memory.WorkingSetBytes)
	capacity := int64(*memory.AvailableBytes + *memory.WorkingSetBytes)
	value := observe.Quantity(m.threshold.Signal, capacity)
	value.Sub(*threshold.Quantity(m.threshold, capacity))
	value.Add(*observe.Quantity(m.threshold.Signal, inactive))

	logger := klog.FromContext(ctx)
	logger.V(3).Info("Watching for usage to cross", "notifier", m.Description(), "usage", value.String())
	m.replace(nil)
	notifier, err := m.factory(logger, m.cgroupPath, MemoryUsage, value.Value())
	if err != nil {
		return err
	}
	m.replace(notifier)
	go notifier.Start(ctx, m.crossed)
	return nil
}

// replace stops the notifier that is in use, and remembers another.
func (m *MemoryThreshold) replace(notifier Notifier) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notifier != nil {
		m.notifier.Stop()
	}
	m.notifier = notifier
}

// Description names the threshold.
func (m *MemoryThreshold) Description() string {
	return describe(m.threshold)
}
