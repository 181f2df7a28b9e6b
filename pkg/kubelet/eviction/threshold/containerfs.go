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

package threshold

import (
	"errors"
	"fmt"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// containerFsSources names, for each signal of the container filesystem, the
// signals that it follows on the filesystem which it really is.
var containerFsSources = []struct{ containerFs, nodeFs, imageFs evictionapi.Signal }{
	{evictionapi.SignalContainerFsAvailable, evictionapi.SignalNodeFsAvailable, evictionapi.SignalImageFsAvailable},
	{evictionapi.SignalContainerFsInodesFree, evictionapi.SignalNodeFsInodesFree, evictionapi.SignalImageFsInodesFree},
}

// WithContainerFs returns the thresholds with those of the container
// filesystem set to the ones of the filesystem that holds writable layers:
// imagefs where it is dedicated to images and layers, else nodefs. Ones that
// the user wrote are overridden in place, and the error names each of them; it
// is a warning, the thresholds are good. Where there are none to follow, the
// added threshold has no operator and is never met.
//
// Like append, it may change the slice that it is given or return another, and
// does so where upstream's would: its manager goes by the old slice for one
// more pass.
//
// A container filesystem that is separate from an imagefs that is not
// dedicated has no meaning, and changes nothing (upstream v1.37.2).
func WithContainerFs(thresholds []evictionapi.Threshold, layout observe.Layout) ([]evictionapi.Threshold, error) {
	all := thresholds
	given := len(thresholds)
	var overridden []error
	for _, source := range containerFsSources {
		from := source.nodeFs
		if layout.DedicatedImageFs && !layout.SeparateContainerFs {
			from = source.imageFs
		}
		for _, hard := range []bool{true, false} {
			at := lastOf(all[:given], source.containerFs, hard)
			if at >= 0 {
				overridden = append(overridden, fmt.Errorf("%s: the %s threshold is ignored; it follows %s", source.containerFs, kind(hard), from))
			}
			if layout.SeparateContainerFs && !layout.DedicatedImageFs {
				continue
			}
			follows := evictionapi.Threshold{Signal: source.containerFs}
			if i := lastOf(thresholds, from, hard); i >= 0 {
				follows = thresholds[i]
				follows.Signal = source.containerFs
			}
			if at >= 0 {
				all[at] = follows
			} else {
				all = append(all, follows)
			}
		}
	}
	return all, errors.Join(overridden...)
}

func lastOf(thresholds []evictionapi.Threshold, signal evictionapi.Signal, hard bool) int {
	for i := len(thresholds) - 1; i >= 0; i-- {
		if thresholds[i].Signal == signal && Hard(thresholds[i]) == hard {
			return i
		}
	}
	return -1
}

func kind(hard bool) string {
	if hard {
		return "hard"
	}
	return "soft"
}
