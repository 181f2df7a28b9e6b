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
	"bytes"
	"math"
	"time"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Decoder reads many lines with the memory of one. Nearly all lines of a long
// journal are heartbeats; those that are written as the Journal writes them are
// read without the JSON library, which takes twenty times as long, and every other
// line with it. It is for one goroutine.
type Decoder struct {
	record       Record
	wake         Wake
	observations Observations
	ages         []Seconds
	seen         observe.Observations
}

// Decode reads a line as the function of that name does. The record is good until
// the next call.
func (d *Decoder) Decode(line []byte) (*Record, error) {
	if d.heartbeat(line) {
		return &d.record, nil
	}
	return Decode(line)
}

// Keep returns a record that stays good when its Decoder reads the next line.
func (r *Record) Keep() *Record {
	if r.seen == nil {
		return r
	}
	kept := *r
	kept.seen = nil
	wake := *r.Wake
	kept.Wake, kept.Observations = &wake, make(Observations, len(r.Observations))
	for signal, o := range r.Observations {
		if o.Age != nil {
			o.Age = SecondsOf(time.Duration(*o.Age))
		}
		kept.Observations[signal] = o
	}
	return &kept
}

// scanner goes through a line; ok is false from the first thing that is not as
// expected.
type scanner struct {
	rest []byte
	ok   bool
}

// word takes a text that must be next.
func (s *scanner) word(text string) {
	if !s.next(text) {
		s.ok = false
	}
}

// next takes a text if it is next.
func (s *scanner) next(text string) bool {
	if s.ok && len(s.rest) >= len(text) && string(s.rest[:len(text)]) == text {
		s.rest = s.rest[len(text):]
		return true
	}
	return false
}

// quoted takes a string without escapes, up to its closing quote.
func (s *scanner) quoted() []byte {
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 || bytes.IndexByte(s.rest[:max(end, 0)], '\\') >= 0 {
		s.ok = false
		return nil
	}
	text := s.rest[:end]
	s.rest = s.rest[end+1:]
	return text
}

// number takes an integer as JSON writes it.
func (s *scanner) number() int64 {
	negative := s.next("-")
	n, digits := uint64(0), 0
	for digits < len(s.rest) && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
		if n > math.MaxInt64/10 {
			s.ok = false
			return 0
		}
		n = n*10 + uint64(s.rest[digits]-'0')
		digits++
	}
	if digits == 0 || n > math.MaxInt64 || s.rest[0] == '0' && digits > 1 {
		s.ok = false // the largest negative number too: it is rare
		return 0
	}
	s.rest = s.rest[digits:]
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// seconds takes a number of seconds as Seconds writes it.
func (s *scanner) seconds() Seconds {
	negative := s.next("-")
	whole := s.number()
	if whole < 0 || whole > math.MaxInt64/int64(time.Second)-1 {
		s.ok = false
		return 0
	}
	n := whole * int64(time.Second)
	if s.next(".") {
		unit, digits := int64(time.Second)/10, 0
		for digits < len(s.rest) && digits < 9 && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
			n += int64(s.rest[digits]-'0') * unit
			unit /= 10
			digits++
		}
		s.ok = s.ok && digits > 0
		s.rest = s.rest[digits:]
	}
	if negative {
		n = -n
	}
	return Seconds(n)
}

// signals are the names of the signals without an allocation.
var signals = func() map[string]evictionapi.Signal {
	names := map[string]evictionapi.Signal{}
	for _, signal := range observe.Signals() {
		names[string(signal)] = signal
	}
	return names
}()

// reasons are those that a loop has, without an allocation.
var reasons = func() map[string]string {
	names := map[string]string{}
	for _, reason := range []string{"start", "interval", "eviction", "crossing", "memcg", "grace", "outcome", "trend"} {
		names[reason] = reason
	}
	return names
}()

// heartbeat reads a heartbeat that is written as the Journal writes it.
func (d *Decoder) heartbeat(line []byte) bool {
	s := scanner{rest: line, ok: true}
	s.word(`{"v":1,"seq":`)
	sequence := s.number()
	s.word(`,"time":"`)
	at := s.quoted()
	s.word(`,"kind":"heartbeat",`)
	dropped := int64(0)
	if s.next(`"dropped":`) {
		dropped = s.number()
		s.word(`,`)
	}
	s.word(`"wake":{"reason":"`)
	reason := s.quoted()
	s.word(`,"latency":`)
	latency := s.seconds()
	s.word(`},"observations":{`)
	if !s.ok || sequence < 0 || dropped < 0 {
		return false
	}
	d.reset()
	for first := true; s.ok && !s.next("}"); first = false {
		if !first {
			s.word(",")
		}
		d.observation(&s)
	}
	s.word("}")
	if !s.ok || len(s.rest) > 0 {
		return false
	}
	known, found := reasons[string(reason)]
	if !found {
		return false
	}
	d.wake = Wake{Reason: known, Latency: latency}
	d.record = Record{
		Version: Version, Sequence: uint64(sequence), Kind: KindHeartbeat, Dropped: uint64(dropped), Wake: &d.wake,
		Observations: d.observations, seen: d.seen,
	}
	return d.record.Time.UnmarshalText(at) == nil
}

func (d *Decoder) reset() {
	if d.observations == nil {
		d.observations, d.seen = Observations{}, observe.Observations{}
		d.ages = make([]Seconds, 0, len(signals))
	}
	clear(d.observations)
	d.ages = d.ages[:0]
}

func (d *Decoder) observation(s *scanner) {
	s.word(`"`)
	name, known := signals[string(s.quoted())]
	s.word(`:{"available":`)
	o := Observation{Available: s.number()}
	s.word(`,"capacity":`)
	o.Capacity = s.number()
	_, twice := d.observations[name]
	if s.ok = s.ok && known && !twice; !s.ok {
		return
	}
	if s.next(`,"reclaimable":`) {
		o.Reclaimable = s.number()
	}
	if s.next(`,"age":`) {
		d.ages = append(d.ages, s.seconds())
		o.Age = &d.ages[len(d.ages)-1]
	}
	if s.next(`,"source":"` + SourceConfirmed + `"`) {
		o.Source = SourceConfirmed
	}
	s.word("}")
	d.observations[name] = o
}
