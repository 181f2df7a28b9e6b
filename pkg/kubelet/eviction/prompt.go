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

package eviction

import (
	"context"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe/machine"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/wake"
)

// prompt is what EvictionPromptWake adds to the manager: probes that wake the
// loop, and numbers that are as new as what woke it. Its fields but the prober
// belong to the loop.
type prompt struct {
	prober *wake.Prober
	trends wake.Trends
	// trend is how soon the summaries' own trend asks for a pass.
	trend time.Duration
}

func newPrompt(probe observe.Probe, m *manager) *prompt {
	// Before anything was seen there is no trend.
	return &prompt{prober: wake.NewProber(probe, m.config.Thresholds, m.waker), trend: math.MaxInt64}
}

// follow takes what a pass saw.
func (p *prompt) follow(thresholds []evictionapi.Threshold, seen observe.Observations) {
	p.trend = p.trends.Next(thresholds, seen, p.prober.Reads)
}

// startProbes watches whatever this machine, or the probe that was configured,
// shows of the signals with thresholds.
func (m *manager) startProbes(ctx context.Context) {
	logger := klog.FromContext(ctx)
	probe := m.config.Probe
	if probe != nil {
		m.prompt = newPrompt(probe, m)
		m.countReclaimable(ctx)
		go m.prompt.prober.Run(ctx)
		logger.Info("Watching for crossed thresholds", "probes", probe.Signals())
		return
	}
	own, missing := machine.Linux.NewProbe(m.config.PodCgroupRoot, hugePagesCount())
	if utilfeature.DefaultFeatureGate.Enabled(evictionPressureSignals) {
		missing = append(missing, own.AddExtraSignals(machine.Linux, m.config.PodCgroupRoot)...)
	}
	if utilfeature.DefaultFeatureGate.Enabled(evictionReclaimableMemory) {
		missing = append(missing, own.AddReclaimable(machine.Linux, m.config.PodCgroupRoot)...)
	}
	m.prompt = newPrompt(own, m)
	m.countReclaimable(ctx)
	stalls, stallsMissing := wake.Stalls(ctx, machine.Linux.Proc, machine.Linux.Cgroup, m.config.PodCgroupRoot, func(source string) {
		logger.V(4).Info("The kernel reports a lack of memory", "source", source)
		m.prompt.prober.Hurry()
	})
	go func() {
		defer own.Close()
		m.prompt.prober.Run(ctx)
	}()
	logger.Info("Watching for crossed thresholds", "probes", own.Signals(), "events", stalls, "missingProbes", missing, "missingEvents", stallsMissing)
	if m.config.FilesystemPaths != nil {
		go m.addFilesystems(ctx, own)
	}
}

// withoutUnwatched drops the signals of EvictionPressureSignals that no threshold
// watches, and that decide nothing else either: most kubelets have them in their
// summaries.
func withoutUnwatched(seen observe.Observations, policy decide.Policy) {
	for signal := range seen {
		traits, _ := observe.TraitsOf(signal)
		needed := policy.ReclaimableMemory && signal == observe.SignalMemoryPressureFull10 ||
			slices.ContainsFunc(policy.Thresholds, func(t evictionapi.Threshold) bool { return t.Signal == signal })
		if traits.Extra && !needed {
			delete(seen, signal)
		}
	}
}

// countReclaimable has the prober count what the step does.
func (m *manager) countReclaimable(ctx context.Context) {
	if utilfeature.DefaultFeatureGate.Enabled(evictionReclaimableMemory) {
		m.prompt.prober.CountReclaimable()
		// The first pass may come before the prober's first look.
		m.prompt.prober.Read(ctx)
	}
}

// probedLately is how old a probe's reading may be to stand beside a summary's: some
// of its slowest looks. A probe that hangs must not go on promising memory.
const probedLately = 5 * time.Second

// complete adds to what the summary says what only the probe can read: signals that
// no summary has, and what could be reclaimed.
func (p *prompt) complete(seen observe.Observations) {
	now := time.Now()
	for signal, probed := range p.prober.Latest() {
		traits, _ := observe.TraitsOf(signal)
		o, found := seen[signal]
		switch {
		case now.Sub(probed.Time) > probedLately:
		case !found && traits.Extra, traits.Stall != observe.NoStall:
			// The machine's own pressure, at the moment.
			seen[signal] = probed
		case found && probed.Reclaimable > 0:
			o.Reclaimable = probed.Reclaimable
			seen[signal] = o
		}
	}
}

// pathsTimeout bounds one question for the filesystems' paths, which the container
// runtime answers, and pathsRetry is the pause after it did not.
const (
	pathsTimeout = 10 * time.Second
	pathsRetry   = 10 * time.Second
)

// addFilesystems asks where the filesystems are until somebody knows.
func (m *manager) addFilesystems(ctx context.Context, own *machine.Probe) {
	logger := klog.FromContext(ctx)
	for {
		bounded, cancel := context.WithTimeout(ctx, pathsTimeout)
		paths, err := m.config.FilesystemPaths(bounded)
		cancel()
		if err == nil {
			for filesystem, path := range paths {
				if err := own.AddFilesystem(filesystem, path); err != nil {
					logger.Error(err, "A filesystem has no probe, the summaries alone tell", "path", path)
				}
			}
			logger.Info("Watching filesystems", "probes", own.Signals())
			return
		}
		logger.V(2).Info("The filesystems are not known yet, the summaries alone tell until they are", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pathsRetry):
		}
	}
}

// rereads is how often a summary is read again that is older than the crossing
// which woke the pass, and rereadAfter the pause before: cadvisor takes some
// milliseconds for a fresh reading.
const (
	rereads     = 2
	rereadAfter = 20 * time.Millisecond
)

// freshen makes what a pass sees as new as what woke it: it reads the summary
// again where that is older, and the memory of pods from their own cgroups when
// memory is short.
func (m *manager) freshen(ctx context.Context, why wake.Wake, reader *observe.Reader, seen observe.Snapshot, pods []*v1.Pod) observe.Snapshot {
	m.prompt.complete(seen.Observations)
	why.Confirm(seen.Observations)
	// What else the probe read alike is as new as that, too: the stats of an image
	// filesystem come with the time at which the runtime last counted its images.
	wake.Wake{Seen: m.prompt.prober.Latest()}.Confirm(seen.Observations)
	for range rereads {
		if len(why.Stale(seen.Observations)) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return seen
		case <-time.After(rereadAfter):
		}
		summary, err := m.summary(ctx)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Could not read the node's stats again, going on with the old")
			break
		}
		seen = reader.FromSummary(summary, observe.PlatformMemory)
		m.prompt.complete(seen.Observations)
		why.Confirm(seen.Observations)
	}
	if m.config.PodCgroupPath != nil && m.memoryIsShort(seen.Observations) {
		m.readPodMemory(ctx, seen, pods)
	}
	return seen
}

// memoryIsShort says whether a threshold on memory is met.
func (m *manager) memoryIsShort(seen observe.Observations) bool {
	for _, t := range m.config.Thresholds {
		traits, _ := observe.TraitsOf(t.Signal)
		if o, found := seen[t.Signal]; found && traits.Resource == v1.ResourceMemory && threshold.Met(t, o) {
			return true
		}
	}
	return false
}

func (m *manager) readPodMemory(ctx context.Context, seen observe.Snapshot, pods []*v1.Pod) {
	for _, pod := range pods {
		used, err := machine.Linux.PodMemory(m.config.PodCgroupPath(pod))
		if err != nil {
			// The pod may have just come or gone; the summary's number stands.
			klog.FromContext(ctx).V(4).Info("Could not read a pod's memory", "pod", klog.KObj(pod), "err", err)
			continue
		}
		seen.SetWorkingSet(pod.UID, uint64(used), m.clock.Now())
	}
}
