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

package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

func TestMain(m *testing.M) {
	// The library that rotates keeps a goroutine for the life of the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"))
}

var (
	epoch     = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	policy    = decide.Policy{Thresholds: []evictionapi.Threshold{{Signal: "memory.available", Operator: evictionapi.OpLessThan, Value: evictionapi.ThresholdValue{Quantity: quantity("1Gi")}}}, PressureTransitionPeriod: 5 * time.Minute, ConcurrentKills: true, Evidence: true, TargetedReclaim: true}
	gibibytes = int64(1 << 30)
)

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// passAt takes a step with some memory available and some pods of a gibibyte each.
func passAt(at time.Time, before decide.State, available int64, pods ...string) *journal.Pass {
	p := &journal.Pass{Now: at, Reason: "interval", WokenAt: at, Policy: policy, Before: before}
	p.Observations = observe.Observations{"memory.available": {Available: available, Capacity: 16 * gibibytes, Time: at}}
	summaries := make([]statsapi.PodStats, len(pods))
	for i, name := range pods {
		used := uint64(gibibytes)
		p.Pods = append(p.Pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}})
		summaries[i] = statsapi.PodStats{PodRef: statsapi.PodReference{UID: "uid-" + name}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &used}}
		p.Stats = append(p.Stats, &summaries[i])
	}
	p.After, p.Decision = decide.Step(policy, before, p.Pods, observe.NewSnapshot(p.Observations, summaries), at)
	return p
}

// written runs a journal for some passes and returns its records.
func written(t *testing.T, sink *bytes.Buffer, passes ...*journal.Pass) []*journal.Record {
	t.Helper()
	run(sink, passes...)
	return read(t, sink.Bytes())
}

func run(sink *bytes.Buffer, passes ...*journal.Pass) {
	j := journal.New(journal.Options{Sink: sink, Node: "worker"})
	for _, pass := range passes {
		j.Pass(pass)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	j.Run(ended)
}

func read(t *testing.T, text []byte) (records []*journal.Record) {
	t.Helper()
	err := journal.Read(bytes.NewReader(text), func(r *journal.Record) error {
		records = append(records, r.Keep())
		return nil
	}, func(fault *journal.LineError) error { return fault })
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return records
}

func kinds(records []*journal.Record) string {
	var names []string
	for _, r := range records {
		name := string(r.Kind)
		if r.Abridged {
			name = "abridged"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// What becomes of passes: the quiet ones are heartbeats and at most one in ten
// seconds, the others have all that they were decided from.
func TestWhatIsRecorded(t *testing.T) {
	second := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }
	quiet := func(n int) *journal.Pass { return passAt(second(n), decide.State{}, 8*gibibytes, "a") }
	near := func(n int) *journal.Pass { return passAt(second(n), decide.State{}, 3*gibibytes/2, "a") }
	kill := passAt(second(9), decide.State{}, gibibytes/2, "a", "b")
	helpless := func(n int) *journal.Pass { return passAt(second(n), decide.State{}, gibibytes/2) }
	for _, test := range []struct {
		name   string
		passes []*journal.Pass
		want   string
	}{
		{"the configuration comes first", []*journal.Pass{quiet(0)}, "config heartbeat"},
		{"heartbeats are ten seconds apart", []*journal.Pass{quiet(0), quiet(1), quiet(9), quiet(10), quiet(20)}, "config heartbeat heartbeat heartbeat"},
		{"a threshold is near", []*journal.Pass{quiet(0), near(1), near(2)}, "config heartbeat pass pass"},
		{"a pod is killed", []*journal.Pass{quiet(0), kill}, "config heartbeat pass"},
		{"nobody can help, for a minute", []*journal.Pass{helpless(0), helpless(10), helpless(59), helpless(60)}, "config pass abridged abridged pass"},
	} {
		t.Run(test.name, func(t *testing.T) {
			records := written(t, &bytes.Buffer{}, test.passes...)
			if got := kinds(records); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			for i, r := range records {
				if r.Sequence != uint64(i+1) {
					t.Errorf("record %d has number %d", i+1, r.Sequence)
				}
			}
		})
	}
}

// A record says nothing of a pod but names and numbers.
func TestNoSecrets(t *testing.T) {
	const secret = "swordfish"
	pass := passAt(epoch, decide.State{}, gibibytes/2, "a")
	pod := pass.Pods[0]
	pod.Labels = map[string]string{"password": secret}
	pod.Annotations = map[string]string{"password": secret, "kubernetes.io/config.source": "api"}
	pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "PASSWORD", Value: secret}}
	pod.Spec.Containers[0].Args, pod.Spec.Containers[0].Command = []string{secret}, []string{secret}
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: secret}}}}
	var text bytes.Buffer
	written(t, &text, pass)
	if strings.Contains(text.String(), secret) {
		t.Errorf("a secret is recorded:\n%s", text.String())
	}
	if !strings.Contains(text.String(), "hostPath") {
		t.Errorf("the pod is not recorded:\n%s", text.String())
	}
}

// slowSink takes for ever, until it is released.
type slowSink struct {
	release chan struct{}
	text    bytes.Buffer
}

func (s *slowSink) Write(text []byte) (int, error) {
	<-s.release
	return s.text.Write(text)
}

// A disk that hangs holds up nobody: records are dropped and counted, and the next
// one that is written says how many.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var dropped atomic.Int64
		sink := &slowSink{release: make(chan struct{})}
		j := journal.New(journal.Options{Sink: sink, OnDrop: func() { dropped.Add(1) }})
		go j.Run(ctx)
		for n := range 1000 {
			j.Pass(passAt(epoch.Add(time.Duration(n)*time.Second), decide.State{}, 3*gibibytes/2))
		}
		if dropped.Load() < 800 {
			t.Errorf("%d of 1000 were dropped", dropped.Load())
		}
		close(sink.release)
		synctest.Wait()
		j.Pass(passAt(epoch.Add(time.Hour), decide.State{}, 3*gibibytes/2))
		synctest.Wait()
		cancel()
		synctest.Wait()
		records := read(t, sink.text.Bytes())
		told, last := uint64(0), uint64(0)
		for _, r := range records {
			if told += r.Dropped; r.Sequence != last+1+r.Dropped {
				t.Errorf("record %d follows %d and tells of %d that were dropped", r.Sequence, last, r.Dropped)
			}
			last = r.Sequence
		}
		if told != uint64(dropped.Load()) {
			t.Errorf("%d are told of, %d were dropped", told, dropped.Load())
		}
	})
}

// fullSink writes half of a line and fails, while it is full.
type fullSink struct {
	full bool
	text bytes.Buffer
}

func (s *fullSink) Write(text []byte) (int, error) {
	if s.full {
		s.text.Write(text[:len(text)/2])
		return len(text) / 2, errors.New("no space left on device")
	}
	return s.text.Write(text)
}

// A disk that is full and then is not: half a line stays, and no other is lost.
func TestFullDisk(t *testing.T) {
	sink := &fullSink{}
	var dropped atomic.Int64
	j := journal.New(journal.Options{Sink: sink, OnDrop: func() { dropped.Add(1) }})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for n, full := range []bool{false, true, true, false, false} {
		sink.full = full
		j.Pass(passAt(epoch.Add(time.Duration(n)*time.Second), decide.State{}, 3*gibibytes/2))
		j.Run(ended)
	}
	var records []*journal.Record
	faults := 0
	err := journal.Read(bytes.NewReader(sink.text.Bytes()), func(r *journal.Record) error {
		records = append(records, r.Keep())
		return nil
	}, func(*journal.LineError) error { faults++; return nil })
	if err != nil || kinds(records) != "config pass config pass pass" || faults != 3 || dropped.Load() != 3 {
		t.Errorf("%v, %s, %d faults, %d dropped:\n%s", err, kinds(records), faults, dropped.Load(), sink.text.String())
	}
	if last := records[len(records)-3]; last.Dropped != 3 {
		t.Errorf("the record after tells of %d", last.Dropped)
	}
	if n := len(j.Recent()); n != 8 {
		t.Errorf("%d lines in memory, want all 8", n)
	}
}

// Files of a mebibyte, ten in all, each of which begins with the configuration.
func TestRotation(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "made", "when", "needed")
	file := journal.OpenFile(directory)
	j := journal.New(journal.Options{Sink: file})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	pods := make([]string, 60)
	for i := range pods {
		pods[i] = fmt.Sprintf("pod-%d", i)
	}
	for n := range 900 {
		j.Pass(passAt(epoch.Add(time.Duration(n)*time.Minute), decide.State{}, gibibytes/2, pods...))
		j.Run(ended)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var paths []string
	// Old files are deleted beside the writer.
	for range 100 {
		var err error
		if paths, err = filepath.Glob(filepath.Join(directory, "eviction*.jsonl")); err != nil {
			t.Fatal(err)
		}
		if len(paths) == 10 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(paths) != 10 {
		t.Errorf("%d files, want 10", len(paths))
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
		records := read(t, text)
		if len(records) == 0 || records[0].Kind != journal.KindConfig {
			t.Errorf("%s does not begin with the configuration", path)
			continue
		}
		read, err := records[0].Config.Policy()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records[1:] {
			if difference, err := r.Verify(read); err != nil || difference != "" {
				t.Fatalf("%s: record %d: %v %s", path, r.Sequence, err, difference)
			}
		}
	}
}

// A directory in whose place there is a file, or that cannot be written to, costs
// records and nothing else; when it is mended, they are written.
func TestUnusableDirectory(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(directory, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var dropped atomic.Int64
	file := journal.OpenFile(directory)
	j := journal.New(journal.Options{Sink: file, OnDrop: func() { dropped.Add(1) }})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	j.Pass(passAt(epoch, decide.State{}, 3*gibibytes/2))
	j.Run(ended)
	if dropped.Load() != 2 {
		t.Errorf("%d dropped, want the configuration and the pass", dropped.Load())
	}
	if err := os.Remove(directory); err != nil {
		t.Fatal(err)
	}
	j.Pass(passAt(epoch.Add(time.Second), decide.State{}, 3*gibibytes/2))
	j.Run(ended)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(directory, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds(read(t, text)); got != "config pass" {
		t.Errorf("got %s: a file without its configuration cannot be replayed", got)
	}
}

// BenchmarkPass is what a record costs the loop, with the pods of a full node that
// is short of memory, while another goroutine writes.
func BenchmarkPass(b *testing.B) {
	pods := make([]string, 110)
	for i := range pods {
		pods[i] = fmt.Sprintf("pod-%d", i)
	}
	pass := passAt(epoch, decide.State{}, gibibytes/2, pods...)
	seen := map[types.UID]*statsapi.PodStats{}
	for i, pod := range pass.Pods {
		seen[pod.UID] = pass.Stats[i]
	}
	ctx, cancel := context.WithCancel(b.Context())
	j := journal.New(journal.Options{})
	var group sync.WaitGroup
	group.Go(func() { j.Run(ctx) })
	b.ReportAllocs()
	for b.Loop() {
		next := *pass
		next.Pods = append(make([]*v1.Pod, 0, len(pass.Pods)), pass.Pods...)
		next.Stats = make([]*statsapi.PodStats, 0, len(pass.Pods))
		for _, pod := range next.Pods {
			next.Stats = append(next.Stats, seen[pod.UID])
		}
		j.Pass(&next)
	}
	cancel()
	group.Wait()
}
