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
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// What is no record gets an answer that names the line and the fault.
func TestBadLines(t *testing.T) {
	const good = `{"v":1,"seq":1,"time":"2026-11-30T03:00:00Z","kind":"heartbeat"}`
	for _, test := range []struct{ name, text, fault string }{
		{"nothing", "", ""},
		{"blank lines", "\n \n" + good + "\n\n", ""},
		{"Windows' ends of lines", good + "\r\n" + good + "\r\n", ""},
		{"cut off at the end", good + "\n" + good[:30], "line 2: the last record is cut off"},
		{"no end, but whole", good + "\n" + good, ""},
		{"cut off in between", good[:30] + "\n" + good + "\n", "line 1: not JSON at column 30"},
		{"no JSON", "E1130 03:00:00 kubelet\n", "line 1: not JSON at column 1"},
		{"other JSON", `{"apiVersion":"v1"}` + "\n", "line 1: no record of an eviction journal"},
		{"a list", "[]\n", "line 1: field"},
		{"a later version", `{"v":2,"seq":1}` + "\n", "line 1: the record has version 2"},
		{"a later version with other types", `{"v":2,"seq":"a"}` + "\n", "line 1: the record has version 2"},
		{"a wrong type", strings.Replace(good, `"seq":1`, `"seq":"one"`, 1) + "\n", "line 1: field seq at column"},
		{"a wrong number of seconds", `{"v":1,"seq":1,"time":"2026-11-30T03:00:00Z","kind":"pass","wake":{"reason":"start","latency":"soon"}}` + "\n", "line 1:"},
		{"a configuration without one", `{"v":1,"kind":"config"}` + "\n", "line 1: a record of kind config has no config"},
		{"an outcome without one", `{"v":1,"kind":"outcome"}` + "\n", "line 1: a record of kind outcome has no outcome"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var fault error
			err := journal.Read(strings.NewReader(test.text), func(*journal.Record) error { return nil }, func(e *journal.LineError) error {
				fault = e
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.fault == "" && fault != nil || test.fault != "" && (fault == nil || !strings.HasPrefix(fault.Error(), test.fault)) {
				t.Errorf("got %v, want %q", fault, test.fault)
			}
		})
	}
}

func TestReadStops(t *testing.T) {
	stop := errors.New("enough")
	line := `{"v":1,"kind":"heartbeat"}` + "\n"
	seen := 0
	err := journal.Read(strings.NewReader(line+line), func(*journal.Record) error { seen++; return stop }, nil)
	if !errors.Is(err, stop) || seen != 1 {
		t.Errorf("%v after %d", err, seen)
	}
}

// Whatever a line holds: reading it and taking its step does not panic.
func FuzzRecord(f *testing.F) {
	for _, pass := range []*journal.Pass{passAt(epoch, decide.State{}, gibibytes/2, "a", "b"), passAt(epoch, decide.State{}, 8*gibibytes)} {
		var sink bytes.Buffer
		run(&sink, pass)
		for line := range bytes.Lines(sink.Bytes()) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		record, err := journal.Decode(line)
		if err != nil {
			return
		}
		if record.Config != nil {
			if p, err := record.Config.Policy(); err == nil {
				again := journal.Record{Observations: record.Observations}
				_, _, _ = again.Step(p)
			}
		}
		if _, err := record.Verify(policy); err != nil {
			return
		}
		if _, err := json.Marshal(record); err != nil && record.Time.Year() < 10000 {
			t.Errorf("a record that was read cannot be written: %v", err)
		}
	})
}
