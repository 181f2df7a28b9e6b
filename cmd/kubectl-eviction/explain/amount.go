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

package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Amount writes an amount of a signal for people: 1012.42Mi, 12345 inodes, 7 processes.
func Amount(signal evictionapi.Signal, n int64) string {
	traits, _ := observe.TraitsOf(signal)
	if traits.Stall != observe.NoStall {
		return observe.Percent(n) + " of the time"
	}
	return AmountOf(traits.Resource, n)
}

// AmountOf writes an amount of a resource for people.
func AmountOf(resource v1.ResourceName, n int64) string {
	switch resource {
	case observe.ResourceInodes:
		return strconv.FormatInt(n, 10) + " inodes"
	case observe.ResourcePIDs:
		return strconv.FormatInt(n, 10) + " processes"
	}
	return Bytes(n)
}

// Bytes writes a number of bytes with a hundredth of its unit.
func Bytes(n int64) string {
	value, unit := float64(n), ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		if value > -1024 && value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	if unit == "" {
		return strconv.FormatInt(n, 10)
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 2, 64), ".00") + unit
}

// Duration writes a time span for people: 3ms, 1.2s, 4m10s.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func seconds(n int64) string { return fmt.Sprintf("%ds", n) }
