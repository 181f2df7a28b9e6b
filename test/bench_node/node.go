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

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var experiments = map[string]experiment{
	"memory": {
		room: 1500,
		hog:  []string{"memory"},
		config: func(room int) (string, error) {
			total, err := memTotal()
			return fmt.Sprintf("evictionHard: {memory.available: %dMi}\n", total>>20-int64(room)), err
		},
		available: func(node node, room int) (func() (int64, error), int64, error) {
			total, err := memTotal()
			if err != nil {
				return nil, 0, err
			}
			used, err := node.memoryUse()
			return func() (int64, error) {
				use, err := used()
				return total - use, err
			}, (total>>20 - int64(room)) << 20, err
		},
	},
	"disk": {
		room: 3000,
		hog:  []string{"disk", "-path", "/data"},
		config: func(room int) (string, error) {
			return fmt.Sprintf("evictionHard: {nodefs.available: %dMi}\nvolumeStatsAggPeriod: 5s\n", diskMiB-room), nil
		},
		available: func(node node, room int) (func() (int64, error), int64, error) {
			path := fmt.Sprintf("/proc/%s/root/var/lib/kubelet", node.init())
			return func() (int64, error) {
				var stat syscall.Statfs_t
				err := syscall.Statfs(path, &stat)
				return int64(stat.Bavail) * stat.Bsize, err
			}, int64(diskMiB-room) << 20, nil
		},
	},
}

// diskMiB is the size of the node's disk, which holds a few hundred MiB already.
const diskMiB = 12 << 10

// node is a sandboxed one of hack/node.
type node struct{ name string }

func (n node) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "hack/node", append([]string{"-n", n.name}, args...)...)
}

func (n node) folder() string {
	folder, err := filepath.Abs(filepath.Join("_output/node/run", n.name))
	if err != nil {
		return ""
	}
	return folder
}

func (n node) up(ctx context.Context, flavour, config string) error {
	file, err := os.CreateTemp("", "kubelet-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = fmt.Fprintf(file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n%s", config)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	kubelet := map[string]string{"patched": "_output/bin/kubelet", "upstream": "_output/bin/kubelet-upstream"}[flavour]
	output, err := n.command(ctx, "up", "--kubelet", kubelet, "--config", file.Name(), "--memory", "8G", "--disk-size", strconv.Itoa(diskMiB)+"M").CombinedOutput()
	if err != nil {
		return fmt.Errorf("hack/node up: %w\n%s", err, output)
	}
	return os.MkdirAll(filepath.Join(n.folder(), "stamps"), 0o755)
}

// down is called also after an interrupt.
func (n node) down() {
	if output, err := n.command(context.Background(), "down").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "hack/node down: %v\n%s", err, output)
	}
}

// init is the process ID of the node's first process.
func (n node) init() string {
	text, err := os.ReadFile(filepath.Join(n.folder(), "pid"))
	if err != nil {
		return "none"
	}
	return strings.TrimSpace(string(text))
}

// runHog starts the hog and returns when its container runs.
func (n node) runHog(ctx context.Context, args []string, rate int) error {
	stamps := filepath.Join(n.folder(), "stamps")
	args = append(append([]string{}, args...), "-rate", strconv.Itoa(rate), "-stamp", "/stamps/hog")
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "hog", "namespace": "default"},
		"spec": map[string]any{
			"nodeName": "node1", "restartPolicy": "Never", "automountServiceAccountToken": false,
			"containers": []any{map[string]any{
				"name": "hog", "image": "registry.k8s.io/local/hog:1", "args": args,
				"volumeMounts": []any{
					map[string]any{"name": "data", "mountPath": "/data"},
					map[string]any{"name": "stamps", "mountPath": "/stamps"},
				},
			}},
			"volumes": []any{
				map[string]any{"name": "data", "emptyDir": map[string]any{}},
				map[string]any{"name": "stamps", "hostPath": map[string]any{"path": stamps}},
			},
		},
	}
	text, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	create := n.command(ctx, "kubectl", "create", "-f", "-")
	create.Stdin = bytes.NewReader(text)
	if output, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the hog: %w\n%s", err, output)
	}
	return nil
}

// signalled returns when the hog got SIGTERM, by its own account.
func (n node) signalled() (time.Time, error) {
	text, err := os.ReadFile(filepath.Join(n.folder(), "stamps", "hog"))
	if err != nil {
		return time.Time{}, err
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(0, nanoseconds), err
}

// decisions are the lines with which the two managers begin to act.
var decisions = regexp.MustCompile(`(?m)^I(\d{4} \d\d:\d\d:\d\d\.\d{6}).*"(?:Eviction manager: attempting to reclaim|Attempting to reclaim a starved resource)"`)

// decided returns when the kubelet first said that it acts, not long before the crossing.
func (n node) decided(crossed time.Time) (time.Time, error) {
	log, err := os.ReadFile(filepath.Join(n.folder(), "logs", "kubelet.log"))
	if err != nil {
		return time.Time{}, err
	}
	for _, match := range decisions.FindAllSubmatch(log, -1) {
		at, err := time.ParseInLocation("20060102 15:04:05", strconv.Itoa(crossed.Year())+string(match[1]), time.Local)
		if err != nil {
			return time.Time{}, err
		}
		if at.After(crossed.Add(-time.Second)) {
			return at, nil
		}
	}
	return time.Time{}, errors.New("no decision in the log")
}

// kubelet returns the process ID of the node's kubelet.
func (n node) kubelet() (string, error) {
	executables, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return "", err
	}
	for _, executable := range executables {
		if path, err := os.Readlink(executable); err == nil && path == filepath.Join(n.folder(), "kubelet") {
			return filepath.Base(filepath.Dir(executable)), nil
		}
	}
	return "", errors.New("no kubelet runs")
}

// memoryUse finds the node's cgroup and returns a reader of its working set, as
// the kubelet counts it: usage less inactive file pages.
func (n node) memoryUse() (func() (int64, error), error) {
	group, usage, inactive := "/sys/fs/cgroup/memory/eviction-"+n.name+"/node", "memory.usage_in_bytes", "total_inactive_file"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group, usage, inactive = "/sys/fs/cgroup/eviction-"+n.name+"/node", "memory.current", "inactive_file"
	}
	line := regexp.MustCompile(`(?m)^` + inactive + ` (\d+)$`)
	return func() (int64, error) {
		text, err := os.ReadFile(filepath.Join(group, usage))
		if err != nil {
			return 0, err
		}
		used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, err
		}
		stat, err := os.ReadFile(filepath.Join(group, "memory.stat"))
		if err != nil {
			return 0, err
		}
		match := line.FindSubmatch(stat)
		if match == nil {
			return 0, fmt.Errorf("%s/memory.stat has no %s", group, inactive)
		}
		idle, err := strconv.ParseInt(string(match[1]), 10, 64)
		return used - idle, err
	}, nil
}

func memTotal() (int64, error) {
	kibibytes, err := number("/proc/meminfo", `(?m)^MemTotal: *(\d+) kB`)
	return int64(kibibytes) << 10, err
}

// oomKills counts the kernel's kills since the machine started; 0 if it does not say.
func oomKills() float64 {
	count, err := number("/proc/vmstat", `(?m)^oom_kill (\d+)`)
	if err != nil {
		return 0
	}
	return count
}

// cpuSeconds is what a process has used, in its own and the kernel's code.
func cpuSeconds(process string) float64 {
	text, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return 0
	}
	// After the name, which may hold spaces, utime and stime are the 12th and
	// 13th field (proc(5)); Linux counts them in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	kernel, _ := strconv.ParseFloat(fields[12], 64)
	return (user + kernel) / 100
}

func number(file, pattern string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%s has no line like %s", file, pattern)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}
