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

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// HoldMemory keeps the cgroup at a path below the hierarchy's mount point from taking
// more memory than it has: what goes beyond is reclaimed from it, and it waits for
// that (memory.high of cgroup v2; v1 has none). release gives it back the limit that
// it had.
func (r Roots) HoldMemory(group string) (release func() error, err error) {
	if group == "" || strings.Contains(group, "..") {
		return nil, fmt.Errorf("%q is not the path of a pod's cgroup", group)
	}
	hierarchy, err := r.memory()
	if err != nil {
		return nil, err
	}
	if !hierarchy.v2 {
		return nil, errors.New("cgroup v1 has no memory.high")
	}
	high := filepath.Join(hierarchy.path, group, "memory.high")
	before, err := os.ReadFile(high)
	if err != nil {
		return nil, err
	}
	current, err := os.ReadFile(filepath.Join(hierarchy.path, group, "memory.current"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(high, bytes.TrimSpace(current), 0); err != nil {
		return nil, err
	}
	return func() error { return os.WriteFile(high, bytes.TrimSpace(before), 0) }, nil
}
