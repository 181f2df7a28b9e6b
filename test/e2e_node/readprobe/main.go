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

// Command readprobe prints what the package's probe reads on this node, as JSON:
// signal to available and capacity. The specs run it inside a sandboxed node:
//
//	readprobe [-pods /kubepods] [-nodefs /var/lib/kubelet]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe/machine"
)

func main() {
	pods := flag.String("pods", "/kubepods", "cgroup of all pods")
	nodefs := flag.String("nodefs", "/var/lib/kubelet", "folder on nodefs")
	flag.Parse()
	if err := run(*pods, *nodefs); err != nil {
		fmt.Fprintln(os.Stderr, "readprobe:", err)
		os.Exit(1)
	}
}

func run(pods, nodefs string) error {
	probe, missing := machine.Linux.NewProbe(pods, true)
	defer probe.Close()
	if err := errors.Join(missing...); err != nil {
		return err
	}
	if err := probe.AddFilesystem(observe.NodeFs, nodefs); err != nil {
		return err
	}
	read := observe.Observations{}
	for _, signal := range probe.Signals() {
		o, err := probe.Read(signal)
		if err != nil {
			return err
		}
		read[signal] = o
	}
	return json.NewEncoder(os.Stdout).Encode(read)
}
