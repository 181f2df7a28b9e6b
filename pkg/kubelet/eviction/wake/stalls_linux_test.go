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

package wake

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestStallsOfThisMachine opens a trigger on this machine's own memory, with the
// tight window or, without CAP_SYS_RESOURCE, with the one of two seconds.
func TestStallsOfThisMachine(t *testing.T) {
	const pressure = "/proc/pressure/memory"
	file, err := os.OpenFile(pressure, os.O_RDWR, 0)
	if err != nil {
		t.Skipf("SKIP: no PSI here: %v", err)
	}
	file.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched, err := Stalls(ctx, "/proc", t.TempDir(), "kubepods", func(string) {})
	if !slices.Equal(watched, []string{pressure}) {
		t.Errorf("watches %v; %v", watched, err)
	}
	// What is not there is named.
	for _, missing := range []string{"memory.pressure", "memory.events"} {
		if err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s is not there: %v", missing, err)
		}
	}
}

// TestNoPSI: without PSI and cgroup v2 everything is named, and nothing runs.
func TestNoPSI(t *testing.T) {
	folder := t.TempDir()
	watched, err := Stalls(t.Context(), folder, folder, "kubepods", func(string) { t.Error("something happened") })
	if len(watched) != 0 || err == nil {
		t.Errorf("watches %v, %v", watched, err)
	}
	for _, name := range []string{filepath.Join(folder, "pressure/memory"), "memory.pressure", "memory.events"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}
