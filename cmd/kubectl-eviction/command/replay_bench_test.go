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

package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

// BenchmarkReplay replays a journal of a million records, nearly all of them
// heartbeats as on a node that is well, and reports the rate and the memory that the
// process took from the system:
//
//	go test ./cmd/kubectl-eviction/command -run xxx -bench Replay -benchtime 3x
func BenchmarkReplay(b *testing.B) {
	path := filepath.Join(b.TempDir(), "journal.jsonl")
	records := longJournal(b, path)
	for b.Loop() {
		var out bytes.Buffer
		streams := Streams{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}}
		if status := Run([]string{"replay", path}, streams); status != exitFine || !strings.Contains(out.String(), "every step decided") {
			b.Fatalf("exit status %d: %s", status, out.String())
		}
	}
	b.ReportMetric(float64(records*b.N)/b.Elapsed().Seconds(), "records/s")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB")
}

// longJournal writes a million records: the life of a node with an eviction, and then
// one heartbeat after the other. It returns how many.
func longJournal(b *testing.B, path string) int {
	b.Helper()
	spec, err := simnode.Parse("node\nnode for=30m\nhard memory.available<1Gi\nhard nodefs.available<10%\npod leak memory=8Gi+600Mi/s\n")
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	inSimulatedTime(func(t *testing.T) { _, text = simnode.LiveRecorded(t, spec) })
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	records := 0
	var heartbeat []byte
	for line := range bytes.Lines(text) {
		if record, err := journal.Decode(line); err == nil && record.Kind == journal.KindHeartbeat {
			heartbeat = bytes.Clone(line)
		}
		records++
		if _, err := file.Write(line); err != nil {
			b.Fatal(err)
		}
	}
	record, err := journal.Decode(heartbeat)
	if err != nil {
		b.Fatal(err)
	}
	stamp := []byte(record.Time.Format(time.RFC3339Nano))
	var chunk bytes.Buffer
	for n := range 1_000_000 - records {
		at := record.Time.Add(time.Duration(n+1)*10*time.Second + time.Duration(n%1000))
		chunk.Write(bytes.Replace(heartbeat, stamp, []byte(at.Format(time.RFC3339Nano)), 1))
		if chunk.Len() > 1<<20 {
			if _, err := chunk.WriteTo(file); err != nil {
				b.Fatal(err)
			}
		}
	}
	if _, err := chunk.WriteTo(file); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return 1_000_000
}
