//go:build linux

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
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// memoryFiles are the names of what a memory cgroup shows.
type memoryFiles struct {
	usage, limit, inactive, active string
	// slab is empty where it is not shown.
	slab string
}

var (
	memoryV1 = memoryFiles{usage: "memory.usage_in_bytes", limit: "memory.limit_in_bytes", inactive: "total_inactive_file", active: "total_active_file"}
	memoryV2 = memoryFiles{usage: "memory.current", limit: "memory.max", inactive: "inactive_file", active: "active_file", slab: "slab_reclaimable"}
)

// hierarchy is where the memory cgroups of a machine are.
type hierarchy struct {
	path  string
	files memoryFiles
	v2    bool
}

func (r Roots) memory() (hierarchy, error) {
	if _, err := os.Stat(filepath.Join(r.Cgroup, "cgroup.controllers")); err == nil {
		return hierarchy{path: r.Cgroup, files: memoryV2, v2: true}, nil
	}
	path := filepath.Join(r.Cgroup, "memory")
	if _, err := os.Stat(filepath.Join(path, memoryV1.usage)); err != nil {
		return hierarchy{}, fmt.Errorf("no memory cgroup of v1 or v2 below %s: %w", r.Cgroup, err)
	}
	return hierarchy{path: path, files: memoryV1}, nil
}

// workingSet reads what a memory cgroup cannot easily give back: its usage less
// its inactive page cache, as cadvisor counts it (lib v0.60, setMemoryStats).
type workingSet struct {
	// usage is nil for the root of cgroup v2, which has no such file.
	usage, stat *file
	inactive    string
}

func newWorkingSet(group string, files memoryFiles) (*workingSet, error) {
	w := &workingSet{
		usage:    &file{path: filepath.Join(group, files.usage)},
		stat:     &file{path: filepath.Join(group, "memory.stat")},
		inactive: files.inactive,
	}
	if _, err := os.Stat(w.usage.path); errors.Is(err, os.ErrNotExist) && files == memoryV2 {
		w.usage = nil
	}
	if _, err := w.read(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// read returns bytes.
func (w *workingSet) read() (int64, error) {
	var usage int64
	var err error
	if w.usage != nil {
		if usage, err = w.usage.number(); err != nil {
			return 0, err
		}
	}
	text, err := w.stat.read()
	if err != nil {
		return 0, err
	}
	if w.usage == nil {
		// As opencontainers/cgroups makes it up for the root (v0.0.7,
		// rootStatsFromMeminfo): anonymous memory and page cache.
		anonymous, err := w.stat.fieldOf(text, "anon")
		if err != nil {
			return 0, err
		}
		cache, err := w.stat.fieldOf(text, "file")
		if err != nil {
			return 0, err
		}
		usage = sum(anonymous, cache)
	}
	inactive, err := w.stat.fieldOf(text, w.inactive)
	if err != nil {
		return 0, err
	}
	return max(0, usage-inactive), nil
}

func (w *workingSet) close() {
	if w.usage != nil {
		w.usage.close()
	}
	w.stat.close()
}

// nodeMemory reads memory.available.
type nodeMemory struct {
	*workingSet
	// total is the machine's memory, and hugePages what of it is set aside for
	// them: no cgroup counts that as used.
	total, hugePages int64
}

func (m nodeMemory) read() (available, capacity int64, err error) {
	used, err := m.workingSet.read()
	if err != nil {
		return 0, 0, err
	}
	available = max(0, m.total-used-m.hugePages)
	return available, sum(available, used), nil
}

// podsMemory reads allocatableMemory.available from the cgroup of all pods.
type podsMemory struct {
	*workingSet
	limit *file
}

// unlimited is where cadvisor takes a limit for none (Kubernetes v1.37.2,
// pkg/kubelet/stats/helper.go).
const unlimited = 1 << 62

func (m podsMemory) read() (available, capacity int64, err error) {
	limit, err := m.limit.number()
	if err != nil {
		return 0, 0, err
	}
	if limit > unlimited {
		return 0, 0, fmt.Errorf("%s sets no limit", m.limit.path)
	}
	used, err := m.workingSet.read()
	return max(0, limit-used), limit, err
}

func (m podsMemory) close() {
	m.workingSet.close()
	m.limit.close()
}

// hugePages adds up the memory that is set aside for huge pages of every size.
func (r Roots) hugePages() int64 {
	pools, err := filepath.Glob(filepath.Join(r.Sys, "kernel/mm/hugepages/hugepages-*kB"))
	if err != nil {
		return 0
	}
	total := int64(0)
	for _, pool := range pools {
		kibibytes, ok := digits([]byte(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(pool), "hugepages-"), "kB")))
		pages := file{path: filepath.Join(pool, "nr_hugepages")}
		count, err := pages.number()
		pages.close()
		if ok && err == nil && kibibytes > 0 && count < math.MaxInt64>>10/kibibytes {
			total = sum(total, count*kibibytes<<10)
		}
	}
	return total
}

// sum adds numbers that are not negative, up to the largest int64.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
