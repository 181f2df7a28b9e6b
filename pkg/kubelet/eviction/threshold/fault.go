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

package threshold

import (
	"errors"
	"fmt"
	"strconv"
)

// FaultKind says what sort of fault it is.
type FaultKind string

// The kinds of faults.
const (
	// BadValue: the text has no meaning for the signal.
	BadValue FaultKind = "BadValue"
	// UnknownSignal: there is no such signal.
	UnknownSignal FaultKind = "UnknownSignal"
	// NoGrace: a soft threshold has no grace period.
	NoGrace FaultKind = "NoGrace"
)

// Fault is one thing that is wrong in the eviction settings.
type Fault struct {
	Kind FaultKind
	// Map is the name of the configuration's map, Signal the key in it and Text
	// what is written there.
	Map, Signal, Text string
	// Problem says what is wrong, Allowed what may be written instead.
	Problem, Allowed string
}

func (f *Fault) Error() string {
	signal := f.Signal
	if f.Kind == UnknownSignal {
		signal = strconv.Quote(signal) // it may be anything
	}
	return fmt.Sprintf("%s: %s: %q: %s; allowed: %s", f.Map, signal, f.Text, f.Problem, f.Allowed)
}

// Faults takes an error of Parse apart; none when it is something else.
func Faults(err error) []*Fault {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var faults []*Fault
		for _, one := range several.Unwrap() {
			faults = append(faults, Faults(one)...)
		}
		return faults
	}
	var fault *Fault
	if errors.As(err, &fault) {
		return []*Fault{fault}
	}
	return nil
}

func joined(faults []*Fault) error {
	all := make([]error, 0, len(faults))
	for _, fault := range faults {
		all = append(all, fault)
	}
	return errors.Join(all...)
}
