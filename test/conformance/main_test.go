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

// Package conformance proves the guarantee that with all of the project's
// feature gates off the package behaves as upstream's: by upstream's own unit
// tests, by comparing the exported APIs, and by letting random nodes live under
// both managers.
package conformance

import (
	"flag"
	"fmt"
	"os"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// nodes is how many random nodes live under both managers.
var nodes = flag.Int("nodes", 2000, "random nodes in the differential test")

func TestMain(m *testing.M) {
	flag.Parse()
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.AllGatesOff()); err != nil {
		panic(err)
	}
	metrics.Register()
	os.Exit(m.Run())
}

// report prints a count that make test shows at its end.
func report(format string, args ...any) {
	fmt.Printf("conformance: "+format+"\n", args...)
}
