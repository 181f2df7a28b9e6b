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
	"strings"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// triggers ask the kernel to report that tasks waited for memory for some of a
// window, in microseconds. The first is tight. Without CAP_SYS_RESOURCE the
// kernel takes windows of whole 2 s only, and says EINVAL to others (kernel
// document accounting/psi, Linux 6.5): then the second.
var triggers = []string{"some 50000 1000000", "some 100000 2000000"}

// stalls is a pressure file with a trigger on it.
type stalls struct {
	path string
	open *os.File
}

// openStalls puts a trigger on a pressure file.
func openStalls(path string) (*stalls, error) {
	var faults []error
	for _, trigger := range triggers {
		open, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if _, err = open.Write([]byte(trigger + "\x00")); err == nil {
			return &stalls{path: path, open: open}, nil
		}
		_ = open.Close() // nothing was written
		faults = append(faults, fmt.Errorf("trigger %q: %w", trigger, err))
	}
	return nil, errors.Join(faults...)
}

// Stalls calls a function whenever tasks of the machine, or of the pods' cgroup,
// stall for memory (PSI), and when the pods' cgroup meets a limit
// (memory.events, cgroup v2), until the context ends. It returns the sources
// that it watches, and why it does not watch the others.
func Stalls(ctx context.Context, proc, cgroup, podsRoot string, happened func(source string)) (watched []string, err error) {
	var faults []error
	var open []*stalls
	for _, path := range []string{filepath.Join(proc, "pressure/memory"), filepath.Join(cgroup, podsRoot, "memory.pressure")} {
		s, err := openStalls(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		open = append(open, s)
		watched = append(watched, path)
	}
	if len(open) > 0 {
		if err := pollStalls(ctx, open, happened); err != nil {
			faults = append(faults, err)
		}
	}
	events := filepath.Join(cgroup, podsRoot, "memory.events")
	if err := watchEvents(ctx, events, happened); err != nil {
		faults = append(faults, err)
	} else {
		watched = append(watched, events)
	}
	return watched, errors.Join(faults...)
}

// pollStalls waits in a goroutine: the runtime's poller does not know POLLPRI,
// which is how a trigger reports.
func pollStalls(ctx context.Context, open []*stalls, happened func(string)) error {
	ended, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	context.AfterFunc(ctx, func() {
		_, _ = unix.Write(ended, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // a counter of 1 always fits
	})
	go func() {
		defer unix.Close(ended)
		defer func() {
			for _, s := range open {
				_ = s.open.Close() // only ever read from
			}
		}()
		for len(open) > 0 {
			polled := []unix.PollFd{{Fd: int32(ended), Events: unix.POLLIN}}
			for _, s := range open {
				polled = append(polled, unix.PollFd{Fd: int32(s.open.Fd()), Events: unix.POLLPRI})
			}
			if _, err := unix.Poll(polled, -1); err != nil && !errors.Is(err, unix.EINTR) {
				klog.FromContext(ctx).Error(err, "Cannot wait for stalls any more")
				return
			}
			if polled[0].Revents != 0 {
				return
			}
			open = served(ctx, open, polled[1:], happened)
		}
	}()
	return nil
}

// served reports what happened, and drops files whose cgroup is gone.
func served(ctx context.Context, open []*stalls, polled []unix.PollFd, happened func(string)) []*stalls {
	var rest []*stalls
	for i, s := range open {
		switch events := polled[i].Revents; {
		case events&unix.POLLERR != 0:
			klog.FromContext(ctx).Info("No stalls are reported any more", "file", s.path)
			_ = s.open.Close() // only ever read from
			continue
		case events&unix.POLLPRI != 0:
			happened(s.path)
		}
		rest = append(rest, s)
	}
	return rest
}

// watchEvents reports changes of a cgroup v2 memory.events file.
func watchEvents(ctx context.Context, path string, happened func(string)) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%q is not an absolute path", path)
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("inotify: %w", err)
	}
	if err := watcher.Add(path); err != nil {
		return errors.Join(fmt.Errorf("inotify %s: %w", path, err), watcher.Close())
	}
	go func() {
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case event, alive := <-watcher.Events:
				if !alive || event.Has(fsnotify.Remove) {
					return
				}
				happened(path)
			case err, alive := <-watcher.Errors:
				if !alive {
					return
				}
				klog.FromContext(ctx).Error(err, "Watching memory events", "file", path)
			}
		}
	}()
	return nil
}
