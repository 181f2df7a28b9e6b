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

package observe_test

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/observe"
)

// quantities as people write them and as arithmetic leaves them.
var quantities = rapid.Custom(func(t *rapid.T) resource.Quantity {
	if rapid.Bool().Draw(t, "whole") {
		// Not the smallest: subtracting it overflows in a Quantity unnoticed.
		return *resource.NewQuantity(rapid.Int64Min(math.MinInt64+1).Draw(t, "n"), resource.BinarySI)
	}
	return resource.MustParse(rapid.StringMatching(`-?[0-9]{1,12}(\.[0-9]{1,9})?(n|u|m||k|M|G|T|Ki|Mi|Gi|Ti)`).Draw(t, "text"))
})

// Amounts add, subtract and compare as quantities do.
func TestAmountIsAQuantity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := quantities.Draw(t, "a"), quantities.Draw(t, "b")
		x, y := observe.AmountOf(&a), observe.AmountOf(&b)
		if got, want := x.Cmp(y), a.Cmp(b); got != want {
			t.Errorf("Cmp(%v, %v) = %d, want %d", &a, &b, got, want)
		}
		sum := a.DeepCopy()
		sum.Add(b)
		if got, want := x.Add(y), observe.AmountOf(&sum); got != want {
			t.Errorf("%v + %v = %v, want %v", &a, &b, got, want)
		}
		difference := a.DeepCopy()
		difference.Sub(b)
		if got, want := x.Sub(y), observe.AmountOf(&difference); got != want {
			t.Errorf("%v - %v = %v, want %v", &a, &b, got, want)
		}
	})
}

// A quantity is read, not changed: AsDec would change how it is written.
func TestAmountOfLeavesTheQuantity(t *testing.T) {
	q := resource.MustParse("1.5Ki")
	q.Add(resource.MustParse("100m"))
	before := q.DeepCopy()
	observe.AmountOf(&q)
	if q.String() != before.String() || q.Format != before.Format {
		t.Errorf("%v became %v", &before, &q)
	}
}

func TestAmountInt64(t *testing.T) {
	tests := []struct {
		name   string
		amount observe.Amount
		want   int64
	}{
		{"nothing", observe.Amount{}, 0},
		{"units", observe.Units(42), 42},
		{"negative", observe.Units(-42), -42},
		{"a part is cut off", observe.AmountOf(parsed("1500m")), 1},
		{"a negative part too", observe.AmountOf(parsed("-1500m")), -1},
		{"the largest", observe.Units(math.MaxInt64), math.MaxInt64},
		{"the smallest", observe.Units(math.MinInt64), math.MinInt64},
		{"too large", observe.Units(math.MaxInt64).Add(observe.Units(1)), math.MaxInt64},
		{"too small", observe.Units(math.MinInt64).Add(observe.Units(-1)), math.MinInt64},
	}
	for _, test := range tests {
		if got := test.amount.Int64(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		if got := observe.Units(n).Int64(); got != n {
			t.Errorf("Units(%d).Int64() = %d", n, got)
		}
	})
}

// A quantity of any size has an amount, without a panic and without the time
// that its zeros would take.
func TestAmountOfAnySize(t *testing.T) {
	largest := observe.AmountOf(parsed("1e200"))
	for _, text := range []string{"1e30", "1e300", "9E"} {
		if q := observe.AmountOf(parsed(text)); q.Cmp(observe.Units(0)) <= 0 || q.Cmp(largest) > 0 {
			t.Errorf("%s became %v", text, q)
		}
	}
	if got := observe.AmountOf(parsed("-1e300")).Int64(); got != math.MinInt64 {
		t.Errorf("-1e300 became %d", got)
	}
}

func parsed(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}
