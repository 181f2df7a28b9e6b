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
	"time"

	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/winstats"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// MemoryThreshold calls a handler while less of the commit limit is left than a
// memory threshold asks for. Windows does not report crossings, so it looks
// every RefreshInterval.
type MemoryThreshold struct {
	threshold evictionapi.Threshold
	handler   func(string)
}

// NewMemoryThreshold watches the machine's commit charge; cgroups play no part.
func NewMemoryThreshold(_ klog.Logger, t evictionapi.Threshold, _ string, _ Factory, handler func(string)) (*MemoryThreshold, error) {
	return &MemoryThreshold{threshold: t, handler: handler}, nil
}

// Start calls the handler until the context ends.
func (m *MemoryThreshold) Start(ctx context.Context) {
	logger := klog.FromContext(ctx)
	logger.Info("Watching the commit limit", "notifier", m.Description(), "interval", RefreshInterval)
	look := time.NewTicker(RefreshInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		info, err := winstats.GetPerformanceInfo()
		if err != nil {
			logger.Error(err, "Could not read the commit charge", "notifier", m.Description())
			continue
		}
		limit := info.CommitLimitPages * info.PageSize
		left := limit - info.CommitTotalPages*info.PageSize
		if left <= uint64(threshold.Quantity(m.threshold, int64(limit)).Value()) {
			m.handler(crossedMessage(m.threshold))
		}
	}
}

// UpdateThreshold has nothing to do: the commit limit is read afresh each time.
func (m *MemoryThreshold) UpdateThreshold(context.Context, *statsapi.Summary) error {
	return nil
}

// Description names the threshold.
func (m *MemoryThreshold) Description() string {
	return describe(m.threshold)
}
