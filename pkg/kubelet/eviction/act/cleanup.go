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

package act

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// How often and how long evicted pods are waited for: upstream's numbers.
const (
	cleanupPoll    = time.Second
	cleanupTimeout = 30 * time.Second
)

// AwaitCleanup returns when everything that the pods held has been given back,
// after 30 s, or when the context ends.
func AwaitCleanup(ctx context.Context, pods []*v1.Pod, cleanedUp func(*v1.Pod) bool, clock clock.WithTicker) {
	logger := klog.FromContext(ctx).WithValues("pods", klog.KObjSlice(pods))
	timeout := clock.NewTimer(cleanupTimeout)
	defer timeout.Stop()
	poll := clock.NewTicker(cleanupPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timeout.C():
			logger.Info("Evicted pods are not cleaned up yet, going on without them", "timeout", cleanupTimeout)
			return
		case <-poll.C():
			if !slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return !cleanedUp(pod) }) {
				logger.Info("Evicted pods are cleaned up")
				return
			}
		}
	}
}
