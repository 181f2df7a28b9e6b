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
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// AddExtraSignals makes readable what EvictionPressureSignals adds, as far as this
// machine shows it; missing says what it does not, and why. Summaries have pressure
// only with upstream's gate KubeletPSI, and never what processes the pods may have.
func (p *Probe) AddExtraSignals(r Roots, podsRoot string) (missing []error) {
	for _, signal := range observe.Signals() {
		traits, _ := observe.TraitsOf(signal)
		if traits.Stall != observe.NoStall {
			missing = append(missing, p.add(signal, stall{file: &file{path: filepath.Join(r.Proc, "pressure", pressureFiles[traits.Resource])}, of: stallWords[traits.Stall]}))
		}
	}
	missing = append(missing, p.add(observe.SignalSwapAvailable, swap{&file{path: filepath.Join(r.Proc, "meminfo")}}))
	pids := filepath.Join(r.Cgroup, "pids")
	if _, err := os.Stat(filepath.Join(r.Cgroup, "cgroup.controllers")); err == nil {
		pids = r.Cgroup
	}
	missing = append(missing, p.add(observe.SignalAllocatablePIDAvailable, podsProcesses{
		current: &file{path: filepath.Join(pids, podsRoot, "pids.current")}, limit: &file{path: filepath.Join(pids, podsRoot, "pids.max")},
	}))
	return slices.DeleteFunc(missing, func(err error) bool { return err == nil })
}

// pressureFiles are those below /proc/pressure (Documentation/accounting/psi.rst).
var pressureFiles = map[v1.ResourceName]string{v1.ResourceMemory: "memory", observe.ResourceIO: "io"}

// stallWords are the words of a line of such a file: which line, and which average.
var stallWords = map[observe.Stall][2]string{
	observe.SomeAvg10: {"some ", "avg10="}, observe.SomeAvg60: {"some ", "avg60="},
	observe.FullAvg10: {"full ", "avg10="}, observe.FullAvg60: {"full ", "avg60="},
}

// stall reads one average of a pressure.
type stall struct {
	file *file
	of   [2]string
}

func (s stall) read() (available, capacity int64, err error) {
	text, err := s.file.read()
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte(s.of[0])) {
			continue
		}
		for _, word := range bytes.Fields(line) {
			value, found := bytes.CutPrefix(word, []byte(s.of[1]))
			if !found {
				continue
			}
			percent, err := strconv.ParseFloat(string(value), 64)
			if err != nil || !(percent >= 0 && percent <= 100) {
				return 0, 0, fmt.Errorf("%s holds %.60q, not a percentage", s.file.path, word)
			}
			o := observe.StallObservation(percent)
			return o.Available, o.Capacity, nil
		}
	}
	return 0, 0, fmt.Errorf("%s has no %s%s", s.file.path, s.of[0], s.of[1])
}

func (s stall) close() { s.file.close() }

// swap reads swap.available.
type swap struct{ info *file }

func (s swap) read() (available, capacity int64, err error) {
	text, err := s.info.read()
	if err != nil {
		return 0, 0, err
	}
	total, err := s.info.fieldOf(text, "SwapTotal")
	if err != nil {
		return 0, 0, err
	}
	free, err := s.info.fieldOf(text, "SwapFree")
	if err != nil {
		return 0, 0, err
	}
	if total == 0 {
		return 0, 0, errors.New("the machine has no swap")
	}
	if total > unlimited>>10 || free > total {
		return 0, 0, fmt.Errorf("%s says that %d KiB of %d KiB of swap are free", s.info.path, free, total)
	}
	return free << 10, total << 10, nil
}

func (s swap) close() { s.info.close() }

// podsProcesses reads allocatablePid.available from the cgroup of all pods, whose
// limit the kubelet sets with podPidsLimit and reserved PIDs (#89807).
type podsProcesses struct{ current, limit *file }

func (p podsProcesses) read() (available, capacity int64, err error) {
	text, err := p.limit.read()
	if err != nil {
		return 0, 0, err
	}
	if string(bytes.TrimSpace(text)) == "max" {
		return 0, 0, fmt.Errorf("%s sets no limit", p.limit.path)
	}
	limit, err := p.limit.number()
	if err != nil {
		return 0, 0, err
	}
	current, err := p.current.number()
	return max(0, limit-current), limit, err
}

func (p podsProcesses) close() {
	p.current.close()
	p.limit.close()
}

// AddReclaimable makes readable, for EvictionReclaimableMemory, what of the node's and
// of the pods' memory the kernel could make available besides, and the pressure that
// says whether it can.
func (p *Probe) AddReclaimable(r Roots, podsRoot string) (missing []error) {
	missing = append(missing, p.add(observe.SignalMemoryPressureFull10, stall{file: &file{path: filepath.Join(r.Proc, "pressure/memory")}, of: stallWords[observe.FullAvg10]}))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reclaimable = map[evictionapi.Signal]reclaimable{}
	add := func(signal evictionapi.Signal, one reclaimable) {
		if _, err := one.reclaimable(); err != nil {
			one.close()
			missing = append(missing, fmt.Errorf("%s: what could be reclaimed: %w", signal, err))
			return
		}
		p.reclaimable[signal] = one
	}
	if node, found := p.readers[evictionapi.SignalMemoryAvailable].(nodeMemory); found {
		add(evictionapi.SignalMemoryAvailable, nodeReclaimable{node: node, info: &file{path: filepath.Join(r.Proc, "meminfo")}})
	}
	if hierarchy, err := r.memory(); err == nil {
		add(evictionapi.SignalAllocatableMemoryAvailable, podsReclaimable{stat: &file{path: filepath.Join(hierarchy.path, podsRoot, "memory.stat")}, files: hierarchy.files})
	}
	return slices.DeleteFunc(missing, func(err error) bool { return err == nil })
}

// nodeReclaimable is by how much the kernel's own estimate exceeds what the kubelet
// counts as available: MemAvailable is what is free, page cache and reclaimable slab,
// less the reserve and what the kernel keeps of them; shared memory and what is
// locked is no part of it (Documentation/filesystems/proc.rst).
type nodeReclaimable struct {
	node nodeMemory
	info *file
}

func (n nodeReclaimable) reclaimable() (int64, error) {
	kibibytes, err := n.info.field("MemAvailable")
	if err != nil {
		return 0, err
	}
	available, capacity, err := n.node.read()
	if err != nil {
		return 0, err
	}
	return min(max(0, kibibytes<<10-available-n.node.hugePages), capacity), nil
}

func (n nodeReclaimable) close() { n.info.close() }

// podsReclaimable is the pods' active page cache and reclaimable slab: what is
// inactive counts as available already.
type podsReclaimable struct {
	stat  *file
	files memoryFiles
}

func (p podsReclaimable) reclaimable() (int64, error) {
	text, err := p.stat.read()
	if err != nil {
		return 0, err
	}
	active, err := p.stat.fieldOf(text, p.files.active)
	if err != nil || p.files.slab == "" {
		return active, err
	}
	slab, err := p.stat.fieldOf(text, p.files.slab)
	return sum(active, slab), err
}

func (p podsReclaimable) close() { p.stat.close() }
