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

// Package wake decides when the manager looks next. What it watches are hints:
// a crossing wakes the loop, which then observes and decides for itself.
package wake

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// RefreshInterval is how often a notifier is told the latest numbers, and on
// Windows how often it looks: upstream's 10 s, so that passes in quick
// succession do not register events with the kernel again and again.
const RefreshInterval = 10 * time.Second

// MemoryUsage is the attribute of a memory cgroup whose crossings are watched.
const MemoryUsage = "memory.usage_in_bytes"

// Notifier sends an event for each crossing.
type Notifier interface {
	// Start sends events until Stop is called or the context ends.
	Start(ctx context.Context, crossed chan<- struct{})
	// Stop ends Start and frees what the notifier holds.
	Stop()
}

// Factory makes a Notifier for the attribute of the cgroup at path to cross value.
type Factory func(logger klog.Logger, path, attribute string, value int64) (Notifier, error)

// silent never sends.
type silent struct{}

func (silent) Start(context.Context, chan<- struct{}) {}
func (silent) Stop()                                  {}

// describe names a memory threshold for messages.
func describe(t evictionapi.Threshold) string {
	kind, scope := "soft", ""
	if threshold.Hard(t) {
		kind = "hard"
	}
	if allocatable(t) {
		scope = " allocatable"
	}
	return kind + scope + " memory eviction threshold"
}

func allocatable(t evictionapi.Threshold) bool {
	return t.Signal == evictionapi.SignalAllocatableMemoryAvailable
}

// crossedMessage is what a handler is told.
func crossedMessage(t evictionapi.Threshold) string {
	return fmt.Sprintf("eviction manager: %s crossed", describe(t))
}
