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
	"maps"
	"sync"
	"time"

	"k8s.io/klog/v2"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Prober reads a probe at a pace that follows the headroom, and wakes the loop
// when a threshold is crossed or about to be.
type Prober struct {
	probe   observe.Probe
	waker   *Waker
	hurry   chan struct{}
	watched []watched
	faulty  map[evictionapi.Signal]bool
	// reclaimable: what the kernel could make available counts while nobody waits.
	reclaimable bool

	// mu guards latest, which others ask for: what was last read of each signal
	// that could be.
	mu     sync.Mutex
	latest observe.Observations
}

// watched is a threshold and its watch.
type watched struct {
	evictionapi.Threshold
	watch
	// limit is the threshold in the signal's unit, for a capacity.
	limit, capacity int64
}

// NewProber returns a prober for the thresholds among some that can be met.
func NewProber(probe observe.Probe, thresholds []evictionapi.Threshold, waker *Waker) *Prober {
	p := &Prober{probe: probe, waker: waker, hurry: make(chan struct{}, 1), faulty: map[evictionapi.Signal]bool{}, latest: observe.Observations{}}
	for _, t := range thresholds {
		if threshold.Watched(t) {
			p.watched = append(p.watched, watched{Threshold: t, capacity: -1})
		}
	}
	return p
}

// CountReclaimable makes the prober count as available what EvictionReclaimableMemory
// does. It is for before Run.
func (p *Prober) CountReclaimable() { p.reclaimable = true }

// Read reads every signal once without waking anybody. It is for before Run.
func (p *Prober) Read(ctx context.Context) { p.read(ctx) }

// Hurry makes the prober look at once, since something happened. It never blocks.
func (p *Prober) Hurry() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// hurriedPace bounds how often a storm of events can make the prober look.
const hurriedPace = 10 * time.Millisecond

// Run looks until the context ends. A read that hangs, as of a dead network
// filesystem, holds up the prober and nothing else.
func (p *Prober) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.hurry:
			if rest := hurriedPace - time.Since(looked); rest > 0 {
				timer.Reset(rest)
				continue
			}
		}
		next := p.look(ctx)
		looked = time.Now()
		timer.Reset(next)
	}
}

// look reads every signal once and returns when to look again.
func (p *Prober) look(ctx context.Context) time.Duration {
	next := slowestPace
	var crossed observe.Observations
	for signal, seen := range p.read(ctx) {
		for i := range p.watched {
			w := &p.watched[i]
			if w.Signal != signal {
				continue
			}
			if seen.Capacity != w.capacity {
				w.capacity, w.limit = seen.Capacity, threshold.Quantity(w.Threshold, seen.Capacity).Value()
			}
			wait, wakeUp := w.see(seen.Available-w.limit, seen.Capacity, seen.Time)
			next = min(next, wait)
			if wakeUp {
				if crossed == nil {
					crossed = observe.Observations{}
				}
				crossed[signal] = p.raw(signal)
			}
		}
	}
	if crossed != nil {
		p.waker.Wake(Wake{Reason: Crossing, At: time.Now(), Seen: crossed})
	}
	return next
}

// read reads every signal that is watched, as it is to be counted. What was read of
// each is noted as it is.
func (p *Prober) read(ctx context.Context) observe.Observations {
	counted := make(observe.Observations, len(p.watched))
	for _, signal := range p.probe.Signals() {
		if !p.watches(signal) {
			continue
		}
		seen, err := p.probe.Read(signal)
		p.noteFault(ctx, signal, err)
		if err != nil {
			continue
		}
		seen.Time = time.Now()
		p.note(signal, seen)
		counted[signal] = seen
	}
	if p.reclaimable {
		counted.CountReclaimable()
	}
	return counted
}

// raw is what was last read of a signal.
func (p *Prober) raw(signal evictionapi.Signal) observe.Observation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest[signal]
}

func (p *Prober) watches(signal evictionapi.Signal) bool {
	if p.reclaimable && signal == observe.SignalMemoryPressureFull10 {
		return true
	}
	for i := range p.watched {
		if p.watched[i].Signal == signal {
			return true
		}
	}
	return false
}

// Reads says whether a signal was readable when it was last looked at. It may be
// called from anywhere.
func (p *Prober) Reads(signal evictionapi.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, read := p.latest[signal]
	return read
}

// Latest returns what was last read of each signal. It may be called from anywhere.
func (p *Prober) Latest() observe.Observations {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.latest)
}

func (p *Prober) note(signal evictionapi.Signal, seen observe.Observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest[signal] = seen
}

// noteFault logs when a signal stops to be readable, and when it is again.
func (p *Prober) noteFault(ctx context.Context, signal evictionapi.Signal, err error) {
	if (err != nil) == p.faulty[signal] {
		return
	}
	p.faulty[signal] = err != nil
	if err != nil {
		p.mu.Lock()
		delete(p.latest, signal)
		p.mu.Unlock()
	}
	if logger := klog.FromContext(ctx); err != nil {
		logger.Error(err, "A probe cannot read, the summaries alone tell until it can", "signal", signal)
	} else {
		logger.Info("A probe reads again", "signal", signal)
	}
}
