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
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// NewProbe opens what there is to read of memory and processes. podsRoot is the
// cgroup of all pods below the hierarchy's mount point. hugePagesCount says
// whether memory set aside for huge pages counts as taken (upstream's gate
// HugepageAwareEviction). missing says what cannot be read, and why; the probe
// reads the rest.
func (r Roots) NewProbe(podsRoot string, hugePagesCount bool) (probe *Probe, missing []error) {
	p := &Probe{readers: map[evictionapi.Signal]reader{}}
	missing = append(missing, p.addMemory(r, podsRoot, hugePagesCount), p.add(evictionapi.SignalPIDAvailable, &processes{
		pidMax:     &file{path: filepath.Join(r.Proc, "sys/kernel/pid_max")},
		threadsMax: &file{path: filepath.Join(r.Proc, "sys/kernel/threads-max")},
		load:       &file{path: filepath.Join(r.Proc, "loadavg")},
	}))
	return p, slices.DeleteFunc(missing, func(err error) bool { return err == nil })
}

func (p *Probe) addMemory(r Roots, podsRoot string, hugePagesCount bool) error {
	hierarchy, err := r.memory()
	if err != nil {
		return fmt.Errorf("memory has no probe: %w", err)
	}
	info := file{path: filepath.Join(r.Proc, "meminfo")}
	defer info.close()
	kibibytes, err := info.field("MemTotal")
	if err != nil {
		return fmt.Errorf("memory has no probe: %w", err)
	}
	if kibibytes > unlimited>>10 {
		return fmt.Errorf("memory has no probe: %s says that there are %d KiB", info.path, kibibytes)
	}
	node := nodeMemory{total: kibibytes << 10}
	if hugePagesCount {
		node.hugePages = r.hugePages()
	}
	var faults []error
	if node.workingSet, err = newWorkingSet(hierarchy.path, hierarchy.files); err != nil {
		faults = append(faults, fmt.Errorf("%s has no probe: %w", evictionapi.SignalMemoryAvailable, err))
	} else {
		faults = append(faults, p.add(evictionapi.SignalMemoryAvailable, node))
	}
	pods := filepath.Join(hierarchy.path, podsRoot)
	used, err := newWorkingSet(pods, hierarchy.files)
	if err != nil {
		faults = append(faults, fmt.Errorf("%s has no probe: %w", evictionapi.SignalAllocatableMemoryAvailable, err))
	} else {
		faults = append(faults, p.add(evictionapi.SignalAllocatableMemoryAvailable, podsMemory{workingSet: used, limit: &file{path: filepath.Join(pods, hierarchy.files.limit)}}))
	}
	return errors.Join(faults...)
}

// AddFilesystem makes the bytes and inodes of the filesystem at a path readable.
func (p *Probe) AddFilesystem(filesystem observe.Filesystem, path string) error {
	var faults []error
	for _, signal := range observe.Signals() {
		traits, _ := observe.TraitsOf(signal)
		if traits.Filesystem == filesystem {
			faults = append(faults, p.add(signal, &disk{path: path, inodes: traits.Resource == observe.ResourceInodes}))
		}
	}
	return errors.Join(faults...)
}

// reopenAfter is how many reads go through one handle on a filesystem. Then the
// path is opened anew, in case something was mounted there since.
const reopenAfter = 100

// disk reads the bytes or the inodes of a filesystem, as cadvisor does (lib
// v0.60, fs.getVfsStats): what is there for anybody but root.
type disk struct {
	path   string
	inodes bool
	stat   unix.Statfs_t
	// handle is 0 while nothing is open: standard input is no filesystem's.
	handle, reads int
}

func (d *disk) read() (available, capacity int64, err error) {
	if d.reads++; d.reads > reopenAfter {
		d.close()
	}
	if d.handle == 0 {
		// O_PATH opens no file: nothing is read of it but where it is.
		if d.handle, err = unix.Open(d.path, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			d.handle = 0
			return 0, 0, fmt.Errorf("opening %s: %w", d.path, err)
		}
		d.reads = 0
	}
	for {
		err = unix.Fstatfs(d.handle, &d.stat)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		d.close()
		return 0, 0, fmt.Errorf("fstatfs %s: %w", d.path, err)
	}
	if d.inodes {
		if d.stat.Files == 0 {
			return 0, 0, fmt.Errorf("the filesystem at %s counts no inodes", d.path)
		}
		return int64(d.stat.Ffree), int64(d.stat.Files), nil
	}
	return int64(d.stat.Bavail) * int64(d.stat.Frsize), int64(d.stat.Blocks) * int64(d.stat.Frsize), nil
}

func (d *disk) close() {
	if d.handle != 0 {
		_ = unix.Close(d.handle) // nothing was written
		d.handle = 0
	}
}

// PodMemory reads the working set of the memory cgroup at a path below the
// hierarchy's mount point, in bytes. The files are opened and closed: pods come
// and go.
func (r Roots) PodMemory(group string) (int64, error) {
	if group == "" || strings.Contains(group, "..") {
		return 0, fmt.Errorf("%q is not the path of a pod's cgroup", group)
	}
	hierarchy, err := r.memory()
	if err != nil {
		return 0, err
	}
	used, err := newWorkingSet(filepath.Join(hierarchy.path, group), hierarchy.files)
	if err != nil {
		return 0, err
	}
	defer used.close()
	return used.read()
}
