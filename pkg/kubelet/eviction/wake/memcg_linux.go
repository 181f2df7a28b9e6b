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
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// memcgEvent tells when a memory cgroup's usage crosses a value (cgroup v1:
// kernel document cgroup-v1/memory.rst, "Memory thresholds").
type memcgEvent struct {
	// events is a non-blocking eventfd, so that reading it parks a goroutine in
	// the runtime's poller and closing it wakes that goroutine.
	events *os.File
}

// NewMemcgNotifier returns a notifier that sends an event whenever attribute of
// the cgroup at path crosses value, in bytes, in either direction. On cgroup
// v2, which has no such events, it returns one that never sends.
func NewMemcgNotifier(path, attribute string, value int64) (Notifier, error) {
	if cgroups.IsCgroup2UnifiedMode() {
		return silent{}, nil
	}
	return newMemcgEvent(path, attribute, value)
}

func newMemcgEvent(path, attribute string, value int64) (Notifier, error) {
	watched, err := os.Open(filepath.Join(path, attribute))
	if err != nil {
		return nil, fmt.Errorf("memory cgroup: %w", err)
	}
	defer watched.Close()
	control, err := os.OpenFile(filepath.Join(path, "cgroup.event_control"), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("memory cgroup: %w", err)
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	events := os.NewFile(uintptr(fd), "eventfd for "+watched.Name())
	if _, err := fmt.Fprintf(control, "%d %d %d", fd, watched.Fd(), value); err != nil {
		events.Close()
		return nil, fmt.Errorf("registering %d for %s: %w", value, watched.Name(), err)
	}
	return &memcgEvent{events: events}, nil
}

// Start sends an event for each crossing until Stop is called or the context ends.
func (m *memcgEvent) Start(ctx context.Context, crossed chan<- struct{}) {
	defer context.AfterFunc(ctx, m.Stop)()
	// An eventfd is read eight bytes at a time: the count since the last read.
	var count [8]byte
	for {
		if _, err := m.events.Read(count[:]); err != nil {
			if !errors.Is(err, os.ErrClosed) {
				klog.FromContext(ctx).Error(err, "No more memory cgroup events", "file", m.events.Name())
			}
			return
		}
		select {
		case crossed <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends Start and frees the descriptor. It may be called more than once.
func (m *memcgEvent) Stop() {
	// The only fault can be that it is closed already.
	_ = m.events.Close()
}
