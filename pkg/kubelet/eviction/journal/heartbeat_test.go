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
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

var anySeconds = rapid.Map(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e10, 1e10)), func(n int64) Seconds { return Seconds(n) })

// heartbeats draws records as the Journal writes them.
var heartbeats = rapid.Custom(func(t *rapid.T) Record {
	r := Record{
		Version: Version, Sequence: rapid.Uint64Max(1<<60).Draw(t, "sequence"), Kind: KindHeartbeat,
		Time:         time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
		Dropped:      rapid.Uint64Max(3).Draw(t, "dropped"),
		Wake:         &Wake{Reason: rapid.SampledFrom([]string{"start", "interval", "later"}).Draw(t, "reason"), Latency: anySeconds.Draw(t, "latency")},
		Observations: Observations{},
	}
	for _, signal := range observe.Signals() {
		if rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
			continue
		}
		o := Observation{Available: rapid.Int64().Draw(t, "available"), Capacity: rapid.Int64().Draw(t, "capacity")}
		if rapid.Bool().Draw(t, "counts reclaimable") {
			o.Reclaimable = rapid.Int64().Draw(t, "reclaimable")
		}
		if rapid.Bool().Draw(t, "timed") {
			age := anySeconds.Draw(t, "age")
			o.Age = &age
		}
		if rapid.Bool().Draw(t, "confirmed") {
			o.Source = SourceConfirmed
		}
		r.Observations[signal] = o
	}
	return r
})

// The short way of the Decoder reads what the JSON library reads.
func TestHeartbeatsAreReadAlike(t *testing.T) {
	var decoder Decoder
	var kept, before *Record
	short := 0
	rapid.Check(t, func(t *rapid.T) {
		line, err := json.Marshal(heartbeats.Draw(t, "record"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if decoder.heartbeat(line) {
			short++
		}
		got, err := decoder.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		plain := *got
		plain.seen = nil
		if len(plain.Observations) == 0 {
			plain.Observations, want.Observations = nil, nil
		}
		if !reflect.DeepEqual(plain, *want) {
			t.Fatalf("%s\nread as %+v\nwant    %+v", line, plain, *want)
		}
		if kept != nil && len(before.Observations) > 0 && !reflect.DeepEqual(kept, before) {
			t.Fatalf("what was kept has changed to %+v, it was %+v", *kept, *before)
		}
		kept, before = got.Keep(), want
	})
	if short == 0 {
		t.Error("no heartbeat was ever read the short way")
	}
}

// A line with anything else in it is left to the JSON library.
func FuzzHeartbeat(f *testing.F) {
	f.Add(`{"v":1,"seq":2,"time":"2000-01-01T00:00:00Z","kind":"heartbeat","wake":{"reason":"start","latency":0},"observations":{"memory.available":{"available":8589934592,"capacity":17179869184,"age":0.5}}}`)
	f.Add(`{"v":1,"seq":2,"time":"2000-01-01T00:00:00Z","kind":"heartbeat","dropped":7,"wake":{"reason":"start","latency":-1.25},"observations":{"pid.available":{"available":-1,"capacity":01,"source":"summary and probe"}}}`)
	f.Fuzz(func(t *testing.T, line string) {
		var decoder Decoder
		if !decoder.heartbeat([]byte(line)) {
			return
		}
		want, err := Decode([]byte(line))
		if err != nil {
			t.Fatalf("%q is read the short way and is none: %v", line, err)
		}
		got := decoder.record
		got.seen = nil
		if len(got.Observations) == 0 {
			got.Observations, want.Observations = nil, nil
		}
		if !got.Time.Equal(want.Time) {
			t.Fatalf("%q: %v, want %v", line, got.Time, want.Time)
		}
		got.Time = want.Time
		if !reflect.DeepEqual(got, *want) {
			t.Fatalf("%q\nread as %+v\nwant    %+v", line, got, *want)
		}
	})
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]Seconds{
		"0": 0, "1": 1e9, "-1": -1e9, "1.25": 1_250_000_000, "0.000000001": 1, "-0.5": -5e8, "1.9999999999": 1_999_999_999,
		"9223372036.854775807": 1<<63 - 1, "-9223372036.854775808": -1 << 63,
	} {
		var got Seconds
		if err := got.UnmarshalJSON([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", ".5", "1e3", "x", "1.2.3", "9223372036.854775808", "99999999999999999999", `"1"`, "null"} {
		var got Seconds
		if err := got.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), "seconds") {
			t.Errorf("%s: %d %v, want an error that says what it is", text, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := anySeconds.Draw(t, "seconds")
		var got Seconds
		if err := got.UnmarshalJSON([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%s is read as %s: %v", want, got, err)
		}
	})
}
