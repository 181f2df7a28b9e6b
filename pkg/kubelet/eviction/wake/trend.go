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
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// shortestTrend is the least time between two passes for a trend: a summary
// costs a full node tens of milliseconds.
const shortestTrend = time.Second

// Trends follows signals that have no probe from summary to summary. The zero
// value has seen nothing. It is for one goroutine.
type Trends struct {
	last observe.Observations
}

// Next takes the observations of a pass, and returns how soon the next should
// come so that it meets a threshold of the named signals shortly after it is
// crossed; a long time if none comes nearer.
func (t *Trends) Next(thresholds []evictionapi.Threshold, seen observe.Observations, probed func(evictionapi.Signal) bool) time.Duration {
	next := time.Duration(1<<63 - 1)
	for _, watched := range thresholds {
		now, found := seen[watched.Signal]
		before, foundBefore := t.last[watched.Signal]
		elapsed := now.Time.Sub(before.Time)
		if !found || !foundBefore || elapsed <= 0 || !threshold.Watched(watched) || probed(watched.Signal) {
			continue
		}
		headroom := now.Available - threshold.Quantity(watched, now.Capacity).Value()
		if loss := float64(before.Available-now.Available) / elapsed.Seconds(); loss > 0 && headroom > 0 {
			next = min(next, max(seconds(float64(headroom)/loss/2), shortestTrend))
		}
	}
	t.keep(seen)
	return next
}

// keep remembers the observations that are news.
func (t *Trends) keep(seen observe.Observations) {
	if t.last == nil {
		t.last = observe.Observations{}
	}
	for signal, now := range seen {
		if now.Time.After(t.last[signal].Time) {
			t.last[signal] = now
		}
	}
}
