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
	"bytes"
	"fmt"
)

// processes reads pid.available: what the kernel allows less the threads there
// are, as the summary has it (Kubernetes v1.37.2, pkg/kubelet/stats/pidlimit).
type processes struct {
	pidMax, threadsMax, load *file
}

func (p *processes) read() (available, capacity int64, err error) {
	pids, err := p.pidMax.number()
	if err != nil {
		return 0, 0, err
	}
	threads, err := p.threadsMax.number()
	if err != nil {
		return 0, 0, err
	}
	text, err := p.load.read()
	if err != nil {
		return 0, 0, err
	}
	// "0.20 0.18 0.12 2/80 11206": after the slash is how many there are (proc(5)).
	slash := bytes.IndexByte(text, '/')
	rest := text[slash+1:]
	end := bytes.IndexByte(rest, ' ')
	if slash < 0 || end < 0 {
		return 0, 0, fmt.Errorf("%s holds %.60q, not the load", p.load.path, text)
	}
	running, ok := digits(rest[:end])
	if !ok {
		return 0, 0, fmt.Errorf("%s holds %.60q, not the load", p.load.path, text)
	}
	capacity = min(pids, threads)
	return capacity - running, capacity, nil
}

func (p *processes) close() {
	p.pidMax.close()
	p.threadsMax.close()
	p.load.close()
}
