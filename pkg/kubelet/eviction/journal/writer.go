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

package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
)

const (
	// queueLength is how many records may wait for a slow disk: a minute's worth on
	// a node that is short of something, some megabytes with many pods.
	queueLength = 128
	// heartbeatEvery is the least time between two records of passes that do not
	// matter: upstream's interval, less what a timer is early.
	heartbeatEvery = 9500 * time.Millisecond
	// abridgeFor is how long the pods are left out of records that decide the same
	// as the one before: a full disk that nobody can help would else turn a day's
	// journal over in an hour.
	abridgeFor = time.Minute
	// remembered is how many lines are kept in memory: the last quarter of an hour
	// of a quiet node. A full node that is short of something has few lines, of tens
	// of kibibytes each.
	remembered      = 100
	rememberedBytes = 4 << 20
	// complainEvery is the least time between two log lines about a sink that fails.
	complainEvery = time.Minute
)

// Options say where a journal goes and whose it is.
type Options struct {
	// Sink receives a line a record; nil keeps the journal in memory alone. It is
	// written to by one goroutine, and may be as slow as it likes.
	Sink io.Writer
	// Node and Kubelet are written into the configuration's record.
	Node, Kubelet string
	// OnDrop is called for each record that could not be written, from any goroutine.
	OnDrop func()
}

// Journal writes records beside whoever hands them over. Its methods but Run may be
// called side by side, never block and do not wait for the disk.
type Journal struct {
	options Options
	queue   chan item
	// dropped counts the records that were lost since one was last written.
	dropped atomic.Uint64

	mu          sync.Mutex
	recent      [][]byte
	recentBytes int

	// What follows belongs to Run.
	sequence uint64
	policy   *decide.Policy
	// configured: the sink has the present policy. After a fault it may be another
	// file, and is told again.
	configured  bool
	heartbeatAt time.Time
	full        *Record
	torn        bool
	complained  time.Time
}

// item is a pass or an outcome on its way.
type item struct {
	at      time.Time
	pass    *Pass
	outcome *Outcome
}

// New returns a journal; records wait until Run is called.
func New(options Options) *Journal {
	return &Journal{options: options, queue: make(chan item, queueLength)}
}

// Pass hands over a pass.
func (j *Journal) Pass(pass *Pass) { j.enqueue(item{at: pass.Now, pass: pass}) }

// Outcome hands over an outcome.
func (j *Journal) Outcome(at time.Time, outcome Outcome) { j.enqueue(item{at: at, outcome: &outcome}) }

func (j *Journal) enqueue(i item) {
	select {
	case j.queue <- i:
	default:
		j.drop()
	}
}

func (j *Journal) drop() {
	j.dropped.Add(1)
	if j.options.OnDrop != nil {
		j.options.OnDrop()
	}
}

// Recent returns the last lines, the oldest first.
func (j *Journal) Recent() [][]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([][]byte(nil), j.recent...)
}

// Run writes records until the context ends, and then those that wait.
func (j *Journal) Run(ctx context.Context) {
	for {
		select {
		case i := <-j.queue:
			j.write(ctx, i)
		case <-ctx.Done():
			for {
				select {
				case i := <-j.queue:
					j.write(ctx, i)
				default:
					return
				}
			}
		}
	}
}

func (j *Journal) write(ctx context.Context, i item) {
	var record Record
	switch {
	case i.outcome != nil:
		record = Record{Version: Version, Time: i.at.UTC().Round(0), Kind: KindOutcome, Outcome: i.outcome}
	default:
		record = i.pass.record()
		if record.Kind == KindHeartbeat {
			if !j.heartbeatAt.IsZero() && i.at.Sub(j.heartbeatAt) < heartbeatEvery {
				return
			}
			j.heartbeatAt = i.at
		}
		j.abridge(&record)
		if j.policy == nil || !reflect.DeepEqual(*j.policy, i.pass.Policy) {
			j.policy, j.configured = &i.pass.Policy, false
		}
	}
	if !j.configured && j.policy != nil {
		j.configured = true
		j.line(ctx, j.config(i.at))
	}
	j.line(ctx, record)
}

// config is the record of the present configuration.
func (j *Journal) config(at time.Time) Record {
	config := configOf(*j.policy)
	config.Node, config.Kubelet = j.options.Node, j.options.Kubelet
	return Record{Version: Version, Time: at.UTC().Round(0), Kind: KindConfig, Config: &config}
}

// abridge leaves the pods out of a record that decides to do nothing, as one did
// a moment before.
func (j *Journal) abridge(record *Record) {
	if record.Kind != KindPass || record.Decision == nil {
		return
	}
	if j.full != nil && !record.Decision.Acts() && !record.Time.Before(j.full.Time) && record.Time.Sub(j.full.Time) < abridgeFor && sameShape(record.Decision, j.full.Decision) {
		record.Abridged = true
		// A kubelet that starts from this record must not take those in flight for gone.
		record.Pods = slices.DeleteFunc(record.Pods, func(p Pod) bool {
			return record.State == nil || !slices.ContainsFunc(record.State.InFlight, func(e Entry) bool { return e.UID == p.UID })
		})
		for i := range record.Decision.Shortages {
			record.Decision.Shortages[i].Candidates = nil
		}
		return
	}
	j.full = record
}

// sameShape says whether two decisions are about the same shortages in the same way.
func sameShape(a, b *Decision) bool {
	if len(a.Shortages) == 0 || len(a.Shortages) != len(b.Shortages) || b.Acts() {
		return false
	}
	for i := range a.Shortages {
		x, y := &a.Shortages[i], &b.Shortages[i]
		if x.Resource != y.Resource || x.Ranked != y.Ranked || x.Outside != y.Outside || len(x.Thresholds) != len(y.Thresholds) {
			return false
		}
	}
	return true
}

// line writes a record, after the configuration if it begins a file.
func (j *Journal) line(ctx context.Context, record Record) {
	record.Dropped = j.dropped.Swap(0)
	j.sequence += record.Dropped + 1
	record.Sequence = j.sequence
	line, err := json.Marshal(record)
	if err != nil {
		j.lost(ctx, record.Dropped, err)
		return
	}
	j.mu.Lock()
	j.recent = append(j.recent, line)
	j.recentBytes += len(line)
	for len(j.recent) > 1 && (len(j.recent) > remembered || j.recentBytes > rememberedBytes) {
		j.recentBytes -= len(j.recent[0])
		j.recent = append(j.recent[:0:0], j.recent[1:]...)
	}
	j.mu.Unlock()
	if j.options.Sink == nil {
		return
	}
	text := make([]byte, 0, len(line)+2)
	if j.torn {
		text = append(text, '\n') // half a line may be there
	}
	text = append(append(text, line...), '\n')
	if file, rotates := j.options.Sink.(rotator); rotates && (record.Kind == KindPass || record.Kind == KindHeartbeat) && file.full(len(text)) {
		if err := file.rotate(); err != nil {
			j.lost(ctx, record.Dropped, err)
			return
		}
		config := j.config(record.Time)
		config.Sequence = j.sequence // that of the record which it goes before
		first, err := json.Marshal(config)
		if err != nil {
			j.lost(ctx, record.Dropped, err)
			return
		}
		text = append(append(first, '\n'), text...)
	}
	_, err = j.options.Sink.Write(text)
	j.torn = err != nil
	if err != nil {
		j.lost(ctx, record.Dropped, err)
	}
}

// rotator is a sink of several files.
type rotator interface {
	// full says whether so many bytes more need another file.
	full(bytes int) bool
	rotate() error
}

func (j *Journal) lost(ctx context.Context, before uint64, err error) {
	j.dropped.Add(before)
	j.sequence -= before + 1 // they are counted again with the next one
	j.configured = false
	j.drop()
	if now := time.Now(); now.Sub(j.complained) >= complainEvery {
		j.complained = now
		klog.FromContext(ctx).Error(err, "Could not write to the journal, decisions go on without; free its filesystem or mend its directory")
	}
}

// String names where the journal goes, for logs.
func (j *Journal) String() string {
	if j.options.Sink == nil {
		return "memory"
	}
	return fmt.Sprint(j.options.Sink)
}
