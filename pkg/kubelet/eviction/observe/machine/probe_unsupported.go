//go:build !linux

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

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

var errNoProbes = errors.New("there are no probes on this operating system")

// NewProbe returns a probe that reads nothing, and says so.
func (Roots) NewProbe(string, bool) (probe *Probe, missing []error) {
	return &Probe{readers: map[evictionapi.Signal]reader{}}, []error{errNoProbes}
}

// AddFilesystem is not supported.
func (*Probe) AddFilesystem(observe.Filesystem, string) error { return errNoProbes }

// PodMemory is not supported.
func (Roots) PodMemory(string) (int64, error) { return 0, errNoProbes }

// AddExtraSignals is not supported.
func (*Probe) AddExtraSignals(Roots, string) []error { return []error{errNoProbes} }

// AddReclaimable is not supported.
func (*Probe) AddReclaimable(Roots, string) []error { return []error{errNoProbes} }

// HoldMemory is not supported.
func (Roots) HoldMemory(string) (release func() error, err error) { return nil, errNoProbes }
