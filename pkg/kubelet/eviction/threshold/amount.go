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
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// unit is what the amounts of a signal are counted in.
type unit struct {
	// counts: amounts are whole things, not bytes.
	counts bool
	// amounts describes what may be written, for messages; "" when a percentage alone
	// has a meaning.
	amounts string
}

// or joins what is allowed of amounts with what else is.
func (u unit) or(rest string) string {
	if u.amounts == "" {
		return ""
	}
	return u.amounts + rest
}

// units of signals, by the format in which their amounts are written.
var units = map[resource.Format]unit{
	resource.BinarySI:  {amounts: "a quantity of bytes such as 100Mi"},
	resource.DecimalSI: {counts: true, amounts: "a whole number such as 1000 or 100k"},
}

func unitOf(traits observe.Traits) unit {
	if traits.Stall != observe.NoStall {
		return unit{} // a share of the time
	}
	return units[traits.Format]
}

// What can never be meant. Upstream takes most of it (#97321,
// openshift/machine-config-operator#2314).
var (
	errNegativeZero = errors.New("negative zero")
	errOverflow     = errors.New("more than any machine has: it overflows 63 bits")
	errNothing      = errors.New("so little that it is less than one unit of any capacity")
)

// longestExponent is the number of digits up to which an exponent is looked at.
// Two are enough for 63 bits, and one of ten digits, such as 1e2147483648, keeps
// resource.ParseQuantity busy for hours.
const longestExponent = 2

// parse parses a quantity of the unit. Fractions of bytes are rounded up as upstream does it: 1.05Gi, and
// 107374182400m, as programs write a tenth of a Gi; but less than one byte,
// 500m, was meant to be something else.
func (u unit) parse(text string) (quantity resource.Quantity, err error) {
	if u.amounts == "" {
		return quantity, errors.New("not a percentage")
	}
	if exponent, negative := exponentOf(text); len(exponent) > longestExponent {
		if negative {
			return quantity, errNothing
		}
		return quantity, errOverflow
	}
	quantity, err = resource.ParseQuantity(text)
	switch {
	case err != nil:
		return quantity, errors.New("not a quantity")
	case quantity.IsZero() && strings.HasPrefix(text, "-"):
		return quantity, errNegativeZero
	// A quantity with a binary suffix is cut off at this value, others are not.
	case quantity.CmpInt64(math.MaxInt64) >= 0:
		return quantity, errOverflow
	case u.counts && strings.HasSuffix(text, "i"):
		return quantity, errors.New("a unit of bytes is given for a count")
	case u.counts && quantity.Cmp(*resource.NewQuantity(quantity.Value(), resource.DecimalSI)) != 0:
		return quantity, errors.New("a fraction is given for a count")
	case quantity.Sign() > 0 && quantity.CmpInt64(1) < 0:
		return quantity, errors.New("less than one byte (m is a thousandth, M a million)")
	}
	return quantity, nil
}

// exponentOf returns the digits of a decimal exponent without leading zeros.
func exponentOf(text string) (digits string, negative bool) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return "", false
	}
	digits, negative = strings.CutPrefix(text[at+1:], "-")
	if digits = strings.TrimPrefix(digits, "+"); strings.Trim(digits, "0123456789") != "" {
		return "", false // no exponent but a suffix, Ei, or nothing that is known
	}
	return strings.TrimLeft(digits, "0"), negative
}

// Percentage parses a text such as "12.5%" into a fraction, here 0.125. The
// error says what is wrong, not with which text.
func Percentage(text string) (fraction float32, err error) {
	number := strings.TrimSuffix(text, "%")
	switch {
	case strings.Contains(number, "%"):
		return 0, errors.New("more than one percent sign")
	case strings.Trim(number, "0123456789.+-eE") != "":
		// NaN, Inf, 0x1p-2 and 1_0, which strconv takes or may take.
		return 0, errors.New("not a decimal number")
	}
	value, err := strconv.ParseFloat(number, 32)
	if err != nil {
		return 0, errors.New("not a percentage")
	}
	// Upstream divides as a float32, and thresholds must not differ by a byte.
	fraction = float32(value) / 100
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	switch {
	case value == 0 && strings.ContainsAny(mantissa, "123456789"):
		return 0, errNothing
	case value == 0 && strings.HasPrefix(number, "-"):
		return 0, errNegativeZero
	case fraction > 0 && float64(fraction)*math.MaxInt64 < 1:
		return 0, errNothing
	case float64(fraction) >= math.MaxInt64:
		return 0, errOverflow
	}
	return fraction, nil
}

// ParseAmount parses an amount of a signal, such as a capacity: bytes or a count, 0
// or more. The error says what is wrong and what is allowed.
func ParseAmount(signal evictionapi.Signal, text string) (int64, error) {
	traits, known := observe.TraitsOf(signal)
	if !known {
		return 0, fmt.Errorf("unsupported eviction signal %q", signal)
	}
	u := unitOf(traits)
	quantity, err := u.parse(text)
	if err == nil && quantity.Sign() < 0 {
		err = errors.New("negative")
	}
	if err != nil {
		return 0, fmt.Errorf("%q: %w; allowed: %s", text, err, u.amounts)
	}
	return quantity.Value(), nil
}
