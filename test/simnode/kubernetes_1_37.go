//go:build !kubernetes1.35 && !kubernetes1.36

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

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// Admit asks a handler, whichever way this version of Kubernetes does.
func Admit(ctx context.Context, handler lifecycle.PodAdmitHandler, pod *v1.Pod) lifecycle.PodAdmitResult {
	return handler.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod})
}

// upstreamsView is the node itself: upstream's loop ends with its context.
func upstreamsView(_ context.Context, n *Node) view { return n }
