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

package journal

import "time"

// frame writes times as ages at the time of a pass. The difference of two times
// that have a monotonic reading is that of those readings: a clock that is set
// between two passes must not change what a replay makes of them.
type frame struct{ now time.Time }

// age of a time; nil for the zero time.
func (f frame) age(t time.Time) *Seconds {
	if t.IsZero() {
		return nil
	}
	return SecondsOf(f.now.Sub(t))
}

// time of an age; the zero time for nil.
func (f frame) time(age *Seconds) time.Time {
	if age == nil {
		return time.Time{}
	}
	return f.now.Add(-time.Duration(*age))
}
