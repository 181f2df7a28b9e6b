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

// Package guest holds tests that need a machine of their own with cgroup v2 and
// PSI: make test-guest runs them in an emulated one (hack/guest). They write to
// the root of the cgroup hierarchy and make memory scarce.
package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the hog as well: "BINARY hog MIB" takes that
// much memory, touches it over and over, and ends when it is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "hog" {
		mebibytes, err := strconv.Atoi(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, "hog: how many MiB?", err)
			os.Exit(2)
		}
		hog(mebibytes)
	}
	os.Exit(m.Run())
}

func hog(mebibytes int) {
	held := make([]byte, mebibytes<<20)
	for round := byte(1); ; round++ {
		for i := 0; i < len(held); i += os.Getpagesize() {
			held[i] = round
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// needsGuest skips a test outside the guest, where it would do harm.
func needsGuest(t *testing.T) {
	t.Helper()
	if os.Getenv("EVICTION_GUEST") == "" {
		t.Skip("SKIP: needs a machine of its own with cgroup v2 and PSI; run make test-guest")
	}
}

const hierarchy = "/sys/fs/cgroup"

// newGroup makes a cgroup that is gone after the test, with all in it.
func newGroup(t *testing.T, name string) string {
	t.Helper()
	group := filepath.Join(hierarchy, name)
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		write(t, filepath.Join(group, "cgroup.kill"), "1")
		var err error
		for range 100 {
			if err = os.Remove(group); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	return group
}

// startHog runs a hog inside a cgroup from its first page on.
func startHog(t *testing.T, group string, mebibytes int) {
	t.Helper()
	command := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$1" hog "$2"`, group, os.Args[0], strconv.Itoa(mebibytes))
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // may have ended
		_ = command.Wait()         // by a signal
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestGuestHasWhatTheTestsNeed holds the guest to what it is for.
func TestGuestHasWhatTheTestsNeed(t *testing.T) {
	needsGuest(t)
	controllers := strings.Fields(read(t, filepath.Join(hierarchy, "cgroup.subtree_control")))
	for _, needed := range []string{"cpu", "cpuset", "io", "memory", "pids"} {
		found := false
		for _, controller := range controllers {
			found = found || controller == needed
		}
		if !found {
			t.Errorf("controller %s is not handed down: %v", needed, controllers)
		}
	}
	group := newGroup(t, "needs")
	for _, file := range []string{"memory.pressure", "memory.events", "memory.high", "memory.reclaim", "pids.max", "cgroup.kill"} {
		if _, err := os.Stat(filepath.Join(group, file)); err != nil {
			t.Error(err)
		}
	}
}

// TestStallShowsAsPressure makes a cgroup wait for memory, and sees it in PSI.
func TestStallShowsAsPressure(t *testing.T) {
	needsGuest(t)
	group := newGroup(t, "stall")
	write(t, filepath.Join(group, "memory.high"), strconv.Itoa(20<<20))
	startHog(t, group, 60)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var total int64
		line, _, _ := strings.Cut(read(t, filepath.Join(group, "memory.pressure")), "\n")
		if _, err := fmt.Sscanf(line[strings.LastIndex(line, "total="):], "total=%d", &total); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if total > (100 * time.Millisecond).Microseconds() {
			return
		}
	}
	t.Error("a minute above memory.high, and no stall of 100 ms:", read(t, filepath.Join(group, "memory.pressure")))
}
