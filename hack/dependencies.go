//go:build dependencies

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

// Package hack is never built. It keeps in go.mod what the scripts and the tests
// build without importing it.
package hack

import (
	// hack/build-kubelet.sh builds it.
	_ "k8s.io/kubernetes/cmd/kubelet"

	// Upstream's unit tests, which test/conformance runs, import them.
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/mock"
	_ "k8s.io/kubernetes/test/utils/ktesting"
)
