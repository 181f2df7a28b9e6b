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

	"k8s.io/klog/v2"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
)

// Collectors free what no running container uses; there is one for every step.
type Collectors map[decide.ReclaimStep]func(context.Context) error

// ImageFreer is an image manager that stops when it is told that it is enough.
// The patch 0003-free-some-images makes upstream's one.
type ImageFreer interface {
	// FreeUnusedImages deletes unused images, the least recently used first and
	// young ones last, and asks before each of them whether what was freed, in
	// bytes by the runtime's account, is enough. It returns how much that was.
	FreeUnusedImages(ctx context.Context, enough func(freed int64) bool) (int64, error)
}

// Reclaim runs the steps in their order. A step that fails is logged, and the
// next one is tried.
func Reclaim(ctx context.Context, steps []decide.ReclaimStep, collectors Collectors) {
	for _, step := range steps {
		if err := collectors[step](ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Could not reclaim", "step", step)
		}
	}
}
