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

// Package journal keeps a record of every pass that mattered: what woke it, what
// was seen, what was decided and why, and later what came of it. A record holds
// all that the pure step was given, so that anybody can take the step again and
// get the same decision; docs/journal.md documents the schema for readers.
//
// Records hold names of pods and numbers: no environment, no command lines, no
// other labels or annotations than the ones that make a pod critical.
package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// Version of the schema. A reader refuses records of a later one; fields that are
// only added do not change it.
const Version = 1

// Kind says what a record tells of.
type Kind string

// The kinds.
const (
	// KindConfig: what the passes after it go by. Every file begins with one.
	KindConfig Kind = "config"
	// KindPass: a pass that mattered.
	KindPass Kind = "pass"
	// KindHeartbeat: a pass in which nothing was near or decided.
	KindHeartbeat Kind = "heartbeat"
	// KindOutcome: what came of something that a pass decided.
	KindOutcome Kind = "outcome"
)

// Record is one line of a journal. The fields of the pass are those of KindPass
// and KindHeartbeat.
type Record struct {
	Version int `json:"v"`
	// Sequence counts the records of one run of the kubelet, from 1; a gap is one
	// that was dropped.
	Sequence uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	Kind     Kind      `json:"kind"`
	// Dropped is how many records before this one could not be written.
	Dropped uint64  `json:"dropped,omitempty"`
	Config  *Config `json:"config,omitempty"`

	Wake         *Wake        `json:"wake,omitempty"`
	Observations Observations `json:"observations,omitempty"`
	// Conditions that the node has after the pass.
	Conditions []v1.NodeConditionType `json:"conditions,omitempty"`
	// Thresholds that are met after the pass, or were and have not reached their goal.
	Thresholds []Standing `json:"thresholds,omitempty"`
	// State before the pass; absent where it was that of a kubelet that has just
	// started, whatever the conditions.
	State    *State    `json:"state,omitempty"`
	Pods     []Pod     `json:"pods,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// Released tells of victims whose return is not awaited any more.
	Released []Release `json:"released,omitempty"`
	// Abridged: the pods are left out, since the pass before decided the same.
	Abridged bool `json:"abridged,omitempty"`

	Outcome *Outcome `json:"outcome,omitempty"`

	// seen is memory of the Decoder for the observations as a step takes them.
	seen observe.Observations
}

// Wake is why a pass was made.
type Wake struct {
	Reason string `json:"reason"`
	// Latency from what woke the pass to its step.
	Latency Seconds `json:"latency"`
	// Seen is what the probe read of the signals that crossed.
	Seen Observations `json:"seen,omitempty"`
}

// Observation is a signal's available and capacity, in its unit.
type Observation struct {
	Available int64 `json:"available"`
	Capacity  int64 `json:"capacity"`
	// Reclaimable is what the kernel could make available besides; it counts with
	// EvictionReclaimableMemory while nobody waits for memory.
	Reclaimable int64 `json:"reclaimable,omitempty"`
	// Age of the numbers; absent where the source does not say.
	Age *Seconds `json:"age,omitempty"`
	// Source is empty for the summary, and SourceConfirmed for one of which a probe
	// read the same a moment before the pass.
	Source string `json:"source,omitempty"`
}

// SourceConfirmed is the source of a number of the summary that a probe has confirmed.
const SourceConfirmed = "summary and probe"

// Observations are written in the order of the signals' table.
type Observations map[evictionapi.Signal]Observation

// MarshalJSON writes the observations of known signals in the order of the table.
func (o Observations) MarshalJSON() ([]byte, error) {
	var line bytes.Buffer
	line.WriteByte('{')
	for _, signal := range observe.Signals() {
		observation, found := o[signal]
		if !found {
			continue
		}
		if line.Len() > 1 {
			line.WriteByte(',')
		}
		fmt.Fprintf(&line, `"%s":{"available":%d,"capacity":%d`, signal, observation.Available, observation.Capacity)
		if observation.Reclaimable != 0 {
			fmt.Fprintf(&line, `,"reclaimable":%d`, observation.Reclaimable)
		}
		if observation.Age != nil {
			fmt.Fprintf(&line, `,"age":%s`, *observation.Age)
		}
		if observation.Source != "" {
			fmt.Fprintf(&line, `,"source":%q`, observation.Source)
		}
		line.WriteByte('}')
	}
	line.WriteByte('}')
	return line.Bytes(), nil
}

// Seconds is a duration, written as a number of seconds exact to the nanosecond.
type Seconds time.Duration

// SecondsOf returns what is written for a duration.
func SecondsOf(d time.Duration) *Seconds {
	s := Seconds(d)
	return &s
}

func (s Seconds) String() string {
	sign, n := "", uint64(s)
	if s < 0 {
		sign, n = "-", -n
	}
	text := strconv.FormatUint(n/uint64(time.Second), 10)
	if rest := n % uint64(time.Second); rest != 0 {
		text += string(bytes.TrimRight([]byte(fmt.Sprintf(".%09d", rest)), "0"))
	}
	return sign + text
}

// MarshalJSON writes a number.
func (s Seconds) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads a number of at most nine decimals; what is finer is cut off.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	d, err := parseSeconds(string(text))
	if err != nil {
		return err
	}
	*s = d
	return nil
}

func parseSeconds(text string) (Seconds, error) {
	fail := func() (Seconds, error) {
		return 0, fmt.Errorf("%q is not a number of seconds such as 1.25, within 292 years", text)
	}
	rest, negative := text, false
	if len(rest) > 0 && rest[0] == '-' {
		rest, negative = rest[1:], true
	}
	n, digits, decimals, point := uint64(0), 0, 0, false
	for i := range len(rest) {
		c := rest[i]
		switch {
		case c == '.' && !point && digits > 0:
			point = true
		case c < '0' || c > '9':
			return fail()
		case point && decimals == 9: // cut off
		default:
			if n > (1<<63)/10 {
				return fail()
			}
			n = n*10 + uint64(c-'0')
			digits++
			if point {
				decimals++
			}
		}
	}
	if digits == 0 {
		return fail()
	}
	for ; decimals < 9; decimals++ {
		if n > (1<<63)/10 {
			return fail()
		}
		n *= 10
	}
	if n > 1<<63 || n == 1<<63 && !negative {
		return fail()
	}
	if negative {
		return Seconds(-n), nil
	}
	return Seconds(n), nil
}

// PodRef names a pod.
type PodRef struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func (p PodRef) String() string { return p.Namespace + "/" + p.Name }

func refTo(pod *v1.Pod) PodRef {
	return PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// OutcomeKind says what came about.
type OutcomeKind string

// The outcomes.
const (
	// OutcomeKilled: the pod's containers have ended.
	OutcomeKilled OutcomeKind = "killed"
	// OutcomeKillFailed: the kill failed, and is tried again.
	OutcomeKillFailed OutcomeKind = "kill-failed"
	// OutcomeKillSlow: the kill exceeded its grace period by far, and goes on.
	OutcomeKillSlow OutcomeKind = "kill-slow"
	// OutcomeCleanedUp: everything that the pod held has been given back.
	OutcomeCleanedUp OutcomeKind = "cleaned-up"
	// OutcomeReclaimed: steps of a reclaim have ended.
	OutcomeReclaimed OutcomeKind = "reclaimed"
)

// Outcome is what came of a kill or a reclaim.
type Outcome struct {
	Kind OutcomeKind `json:"kind"`
	// Took is the time since it was asked for.
	Took Seconds `json:"took"`
	// Pod of a kill, and its error.
	Pod   *PodRef `json:"pod,omitempty"`
	Error string  `json:"error,omitempty"`
	// Reclaim that has ended.
	Reclaim *ReclaimOutcome `json:"reclaim,omitempty"`
}

// ReclaimOutcome is what steps freed, in the signal's unit.
type ReclaimOutcome struct {
	Filesystem string             `json:"filesystem"`
	Steps      []string           `json:"steps"`
	Signal     evictionapi.Signal `json:"signal"`
	Wanted     int64              `json:"wanted"`
	// Freed is what was available more when they had ended; absent if unknown.
	Freed *int64 `json:"freed,omitempty"`
	// Claimed is what the runtime says that it freed, in bytes.
	Claimed int64 `json:"claimed,omitempty"`
}

// Release compares what a victim's end was expected to return with by how much
// what is available rose meanwhile, by signal in its unit. Whatever else grew or
// shrank is in it too, and victims in flight together share one rise.
type Release struct {
	Pod      PodRef                       `json:"pod"`
	Expected map[evictionapi.Signal]int64 `json:"expected"`
	Measured map[evictionapi.Signal]int64 `json:"measured"`
	// After is the time since the kill was decided.
	After Seconds `json:"after"`
}

var _ json.Marshaler = Observations{}
