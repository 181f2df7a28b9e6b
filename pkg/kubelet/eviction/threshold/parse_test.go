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

package threshold_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name     string
		settings threshold.Settings
		// want are words that the error must have: the map, the signal, the text.
		want []string
	}{
		{"unknown signal", threshold.Settings{Hard: map[string]string{"memory.avail": "1Gi"}}, []string{"evictionHard", `"memory.avail"`, "memory.available"}},
		{"no quantity", threshold.Settings{Hard: map[string]string{"memory.available": "much"}}, []string{"evictionHard", "memory.available", `"much"`}},
		{"nothing", threshold.Settings{Hard: map[string]string{"memory.available": "0"}}, []string{"memory.available", `"0"`, "above 0"}},
		{"negative", threshold.Settings{Soft: map[string]string{"memory.available": "-1Gi"}}, []string{"evictionSoft", `"-1Gi"`, "above 0"}},
		{"too many percent", threshold.Settings{Hard: map[string]string{"nodefs.available": "101%"}}, []string{"nodefs.available", `"101%"`, "100%"}},
		{"no percentage", threshold.Settings{Hard: map[string]string{"nodefs.available": "x%"}}, []string{`"x%"`, "percentage"}},
		{"soft without grace", threshold.Settings{Soft: map[string]string{"nodefs.available": "5%"}}, []string{"evictionSoft", "nodefs.available", "evictionSoftGracePeriod"}},
		{"bad grace", threshold.Settings{SoftGracePeriod: map[string]string{"nodefs.available": "soon"}}, []string{"evictionSoftGracePeriod", `"soon"`}},
		{"negative grace", threshold.Settings{SoftGracePeriod: map[string]string{"nodefs.available": "-1s"}}, []string{`"-1s"`, "negative"}},
		{"negative reclaim", threshold.Settings{MinimumReclaim: map[string]string{"nodefs.available": "-1"}}, []string{"evictionMinimumReclaim", `"-1"`}},
		{"no percent to reclaim", threshold.Settings{MinimumReclaim: map[string]string{"nodefs.available": "0%"}}, []string{`"0%"`, "above"}},
		{"all faults at once", threshold.Settings{
			Hard: map[string]string{"memory.available": "x"}, Soft: map[string]string{"pid.available": "y"},
			SoftGracePeriod: map[string]string{"pid.available": "z"}, MinimumReclaim: map[string]string{"nope": "1"},
		}, []string{`"x"`, `"y"`, `"z"`, `"nope"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			thresholds, err := threshold.Parse(test.settings)
			if err == nil {
				t.Fatalf("no error, but %v", thresholds)
			}
			for _, word := range test.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %s", err, word)
				}
			}
			if again, err2 := threshold.Parse(test.settings); again != nil || err2.Error() != err.Error() {
				t.Errorf("the second time: %v, %q", again, err2)
			}
		})
	}
}

// The order of the result does not depend on that of a map.
func TestParseOrder(t *testing.T) {
	settings := threshold.Settings{
		Hard:             map[string]string{"pid.available": "1000", "memory.available": "1Gi", "nodefs.available": "10%", "imagefs.available": "100%"},
		Soft:             map[string]string{"memory.available": "2Gi"},
		SoftGracePeriod:  map[string]string{"memory.available": "30s"},
		GuardAllocatable: true,
	}
	want := "memory.available nodefs.available pid.available memory.available allocatableMemory.available"
	for range 20 {
		thresholds, err := threshold.Parse(settings)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range thresholds {
			got = append(got, string(one.Signal))
		}
		if strings.Join(got, " ") != want {
			t.Fatalf("got %v, want %s", got, want)
		}
	}
}

// TestStrict lists what can never be meant: upstream takes it. An error names the
// map, the signal, the text, what is wrong and what is allowed (case 31, case 33).
func TestStrict(t *testing.T) {
	hard := func(signal, text string) threshold.Settings {
		return threshold.Settings{Hard: map[string]string{signal: text}}
	}
	reclaim := func(signal, text string) threshold.Settings {
		return threshold.Settings{MinimumReclaim: map[string]string{signal: text}}
	}
	tests := []struct {
		settings threshold.Settings
		want     string
	}{
		{hard("nodefs.inodesFree", "100Mi"), `evictionHard: nodefs.inodesFree: "100Mi": a unit of bytes is given for a count; allowed: a whole number such as 1000 or 100k, above 0, or a percentage from 0% to 100%`},
		{hard("pid.available", "1Ki"), `"1Ki": a unit of bytes`},
		{hard("pid.available", "500m"), `"500m": a fraction is given for a count`},
		{hard("imagefs.inodesFree", "0.5"), `"0.5": a fraction`},
		{hard("memory.available", "NaN%"), `evictionHard: memory.available: "NaN%": not a decimal number; allowed: a quantity of bytes such as 100Mi, above 0, or a percentage from 0% to 100%`},
		{hard("memory.available", "-0%"), `"-0%": negative zero`},
		{hard("memory.available", "10%%"), `"10%%": more than one percent sign`},
		{hard("memory.available", "1e-30%"), `"1e-30%": so little`},
		{hard("memory.available", "1e-400%"), `"1e-400%": so little`},
		{hard("memory.available", "0x1p-2%"), `"0x1p-2%": not a decimal number`},
		{hard("memory.available", "500m"), `"500m": less than one byte`},
		{hard("memory.available", "10E"), `"10E": more than any machine has`},
		{hard("memory.available", "16Ei"), `"16Ei": more than any machine has`},
		{hard("memory.available", "9223372036854775808"), `overflows`},
		// This one keeps resource.ParseQuantity busy for hours.
		{hard("memory.available", "1e2147483648"), `"1e2147483648": more than any machine has`},
		{hard("memory.available", "1e-2147483648"), `"1e-2147483648": so little`},
		{reclaim("memory.available", "Inf%"), `evictionMinimumReclaim: memory.available: "Inf%": not a decimal number; allowed: a quantity of bytes such as 100Mi, 0 or more, or a percentage above 0%`},
		{reclaim("memory.available", "1e30%"), `overflows`},
		{reclaim("memory.available", "-0"), `"-0": negative zero`},
		{reclaim("nodefs.inodesFree", "1Gi"), `"1Gi": a unit of bytes`},
		{threshold.Settings{SoftGracePeriod: map[string]string{"memory.available": "-0s"}}, `evictionSoftGracePeriod: memory.available: "-0s": negative zero; allowed: a duration of 0 or more, such as 1m30s`},
	}
	for _, test := range tests {
		thresholds, err := threshold.Parse(test.settings)
		if err == nil {
			t.Errorf("%v was taken: %v", test.settings, thresholds)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q does not say %s", err, test.want)
		}
	}
}

// TestTaken lists unusual texts that do mean something, and stay valid.
func TestTaken(t *testing.T) {
	for _, text := range []string{"1.05Gi", "107374182400m", "1e3", "1E9", "+5", "1", "7Ei", "0%", "100%", "0.0%", "100.0%", ".5%", "+5%", "1e1%", "1e-12%"} {
		for _, settings := range []threshold.Settings{
			{Hard: map[string]string{"memory.available": text}},
			{Soft: map[string]string{"nodefs.available": text}, SoftGracePeriod: map[string]string{"nodefs.available": "0s"}},
		} {
			if _, err := threshold.Parse(settings); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for _, text := range []string{"1000", "100k", "1.5k", "1e6", "2M", "2000m", "5%", "0%", "100%"} {
		if _, err := threshold.Parse(threshold.Settings{Hard: map[string]string{"nodefs.inodesFree": text, "pid.available": text}}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"0", "10%", "200%", "500Mi"} {
		if _, err := threshold.Parse(threshold.Settings{MinimumReclaim: map[string]string{"memory.available": text}}); err != nil {
			t.Errorf("%q to reclaim: %v", text, err)
		}
	}
}

// The signals of EvictionPressureSignals are unknown while the gate is off, and those
// of pressure have percentages alone.
func TestPressureSignals(t *testing.T) {
	for _, test := range []struct {
		signal, text string
		on           bool
		want         string
	}{
		{"memory.pressure.full.avg10", "20%", false, "unsupported eviction signal while EvictionPressureSignals is off"},
		{"memory.pressure.full.avg10", "20%", true, ""},
		{"memory.pressure.full.avg10", "20", true, "not a percentage; allowed: a percentage from 0% to 100%"},
		{"swap.available", "1Gi", true, ""},
		{"allocatablePid.available", "1Gi", true, "a unit of bytes"},
	} {
		thresholds, err := threshold.Parse(threshold.Settings{Hard: map[string]string{test.signal: test.text}, PressureSignals: test.on})
		if test.want == "" && (err != nil || len(thresholds) != 1 || !threshold.Watched(thresholds[0])) ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %s: %v, %v", test.signal, test.text, thresholds, err)
		}
	}
}

// 0% and 100% leave a signal unguarded, as upstream documents it.
func TestDisabled(t *testing.T) {
	for _, text := range []string{"0%", "100%"} {
		thresholds, err := threshold.Parse(threshold.Settings{Hard: map[string]string{"memory.available": text}})
		if err != nil || len(thresholds) != 0 {
			t.Errorf("%s: %v, %v", text, thresholds, err)
		}
	}
}

// An error comes apart into its faults.
func TestFaults(t *testing.T) {
	_, err := threshold.Parse(threshold.Settings{
		Hard: map[string]string{"pid.available": "1Ki", "nope": "1"},
		Soft: map[string]string{"memory.available": "1Gi"},
	})
	var got []string
	for _, fault := range threshold.Faults(err) {
		got = append(got, strings.Join([]string{string(fault.Kind), fault.Map, fault.Signal, fault.Text}, " "))
	}
	want := []string{"UnknownSignal evictionHard nope 1", "BadValue evictionHard pid.available 1Ki", "NoGrace evictionSoft memory.available 1Gi"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if faults := threshold.Faults(errors.New("something else")); faults != nil {
		t.Errorf("faults of another error: %v", faults)
	}
}

// oddTexts are where the fuzzing starts.
var oddTexts = []string{"100Mi", "10%", "0%", "-0%", "NaN%", "10%%", "1e-30%", "1e400", "1e2147483648", "30s", "-0s", "", "%", "1.05Gi", "9E", "-1", "500m", "1_0%", "0x1p-2%", "Inf%"}

// FuzzParse gives any text to every map: no panic; it is refused with a fault that
// names it, or makes a threshold that is as it was written.
func FuzzParse(f *testing.F) {
	for _, text := range oddTexts {
		f.Add("memory.available", text)
		f.Add("nodefs.inodesFree", text)
		f.Add("memory.pressure.full.avg10", text)
	}
	f.Fuzz(func(t *testing.T, signal, text string) {
		one := map[string]string{signal: text}
		for _, settings := range []threshold.Settings{
			{Hard: one}, {Soft: one, SoftGracePeriod: map[string]string{signal: "1s"}},
			{Hard: map[string]string{signal: "1"}, MinimumReclaim: one}, {SoftGracePeriod: one},
		} {
			settings.PressureSignals = true
			thresholds, err := threshold.Parse(settings)
			if err != nil {
				if thresholds != nil {
					t.Fatalf("both %v and %v", thresholds, err)
				}
				for _, fault := range threshold.Faults(err) {
					if fault.Signal != signal || fault.Problem == "" || fault.Allowed == "" || !strings.Contains(err.Error(), fault.Map) {
						t.Fatalf("%+v does not say enough", fault)
					}
				}
				continue
			}
			for _, parsed := range thresholds {
				isSane(t, parsed, text)
			}
		}
	})
}

func isSane(t *testing.T, parsed evictionapi.Threshold, text string) {
	t.Helper()
	seen := observe.Observation{Available: 1, Capacity: 2}
	threshold.Met(parsed, seen)
	threshold.Unresolved(parsed, seen)
	if !threshold.Watched(parsed) {
		t.Errorf("operator %q", parsed.Operator)
	}
	// A percentage is of a capacity, whatever it is, and never turns negative.
	if amount := threshold.Quantity(parsed, 1<<40); amount.Sign() < 0 {
		t.Errorf("%q of a Ti is %s", text, amount)
	}
	if parsed.Value.Quantity != nil && parsed.Value.Quantity.Value() <= 0 {
		t.Errorf("%q is %d", text, parsed.Value.Quantity.Value())
	}
}

// FuzzPercentage: what is taken is a number.
func FuzzPercentage(f *testing.F) {
	for _, text := range oddTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fraction, err := threshold.Percentage(text)
		if err == nil && (fraction != fraction || fraction > math.MaxInt64 || fraction < -math.MaxFloat32 || fraction == 0 && math.Signbit(float64(fraction))) {
			t.Errorf("%q is %v", text, fraction)
		}
	})
}
