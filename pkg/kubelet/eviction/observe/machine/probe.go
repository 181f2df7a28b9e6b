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

// Package machine reads this machine's raw numbers from the files in which the
// kernel shows them: memory, filesystems and processes. Files are kept open and
// read again from their beginning, without an allocation. On anything but Linux
// there is nothing to read.
package machine

import (
	"fmt"
	"sync"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Roots is where the kernel's files are mounted; a test has its own.
type Roots struct {
	Proc, Sys, Cgroup string
}

// Linux is where they are on every machine.
var Linux = Roots{Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup"}

// reader reads one signal.
type reader interface {
	read() (available, capacity int64, err error)
	close()
}

// reclaimable reads what of a signal the kernel could make available besides.
type reclaimable interface {
	reclaimable() (int64, error)
	close()
}

// Probe is the machine's own observe.Probe. Filesystems may be added while it is
// in use; its other methods belong to one goroutine.
type Probe struct {
	mu      sync.RWMutex
	readers map[evictionapi.Signal]reader
	// reclaimable is what AddReclaimable found.
	reclaimable map[evictionapi.Signal]reclaimable
}

var _ observe.Probe = &Probe{}

// Signals lists what can be read, in the order of observe.Signals.
func (p *Probe) Signals() []evictionapi.Signal {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var known []evictionapi.Signal
	for _, signal := range observe.Signals() {
		if p.readers[signal] != nil {
			known = append(known, signal)
		}
	}
	return known
}

// Read reads a signal. A read of a filesystem lasts as long as statfs(2) does,
// which for a network filesystem may be for ever.
func (p *Probe) Read(signal evictionapi.Signal) (observe.Observation, error) {
	p.mu.RLock()
	r, besides := p.readers[signal], p.reclaimable[signal]
	p.mu.RUnlock()
	if r == nil {
		return observe.Observation{}, fmt.Errorf("%s has no probe", signal)
	}
	available, capacity, err := r.read()
	o := observe.Observation{Available: available, Capacity: capacity}
	if err == nil && besides != nil {
		o.Reclaimable, err = besides.reclaimable()
	}
	return o, err
}

// add makes a signal readable, if the first read works; otherwise it says why not.
func (p *Probe) add(signal evictionapi.Signal, r reader) error {
	if _, _, err := r.read(); err != nil {
		r.close()
		return fmt.Errorf("%s has no probe: %w", signal, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers[signal] = r
	return nil
}

// Close closes what is open; the probe must not be in use.
func (p *Probe) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.readers {
		r.close()
	}
	clear(p.readers)
	for _, besides := range p.reclaimable {
		besides.close()
	}
	clear(p.reclaimable)
}
