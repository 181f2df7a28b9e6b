//go:build kubernetes1.35 || kubernetes1.36

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

package simnode

import (
	"context"
	"runtime"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// Admit asks a handler, whichever way this version of Kubernetes does: without
// the context.
func Admit(_ context.Context, handler lifecycle.PodAdmitHandler, pod *v1.Pod) lifecycle.PodAdmitResult {
	return handler.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

// upstreamsView is a node that ends upstream's loop once the story is over, as
// these versions go on for ever.
func upstreamsView(ctx context.Context, n *Node) view { return mortal{Node: n, story: ctx} }

type mortal struct {
	*Node
	story context.Context
}

func (m mortal) Get(ctx context.Context, fresh bool) (*statsapi.Summary, error) {
	m.end()
	return m.Node.Get(ctx, fresh)
}

func (m mortal) HasDedicatedImageFs(ctx context.Context) (bool, error) {
	m.end()
	return m.Node.HasDedicatedImageFs(ctx)
}

// end ends the goroutine that asks, with what it has deferred.
func (m mortal) end() {
	if m.story.Err() != nil {
		runtime.Goexit()
	}
}
