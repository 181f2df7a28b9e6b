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

package eviction_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.AllGatesOff()); err != nil {
		panic(err)
	}
	code := m.Run()
	// The library that rotates the journal keeps a goroutine for the process's life.
	if err := goleak.Find(goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun")); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}
