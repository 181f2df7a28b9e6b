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

package observe

import (
	"math"
	"math/big"
	"math/bits"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is a signed number of bytes, inodes or processes, exact to a
// billionth, which is the finest step of a resource.Quantity. Its 128 bits
// hold the sum of any usages that a pod can have, so that adding and comparing
// them is exact and allocates nothing. Beyond 1.7e29, which only a request or a
// limit can be that no machine could grant, an Amount stays at its largest.
// The zero value is zero. Amounts compare with == and Cmp.
type Amount struct {
	// hi and lo are the two's complement of the number of billionths.
	hi int64
	lo uint64
}

// billionths in one unit.
const billionths = 1_000_000_000

// Units returns n whole units.
func Units(n int64) Amount {
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	hi, lo := bits.Mul64(magnitude, billionths)
	a := Amount{hi: int64(hi), lo: lo}
	if n < 0 {
		return a.negated()
	}
	return a
}

// AmountOf returns the amount of a quantity. What is finer than a billionth is
// cut off; what does not fit in 128 bits becomes the largest or smallest
// Amount. The quantity is not changed.
func AmountOf(q *resource.Quantity) Amount {
	if n, exact := q.AsInt64(); exact {
		return Units(n)
	}
	// AsDec changes the quantity's own representation, hence the copy.
	own := q.DeepCopy()
	dec := own.AsDec()
	shift := int64(9) - int64(dec.Scale())
	n := new(big.Int).Set(dec.UnscaledBig())
	// No Quantity has anywhere near this many digits; the bound keeps a value
	// made by hand from asking for gigabytes of zeros.
	const mostDigits = 1000
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(min(max(shift, -shift), mostDigits)), nil)
	if shift >= 0 {
		n.Mul(n, power)
	} else {
		n.Div(n, power)
	}
	return amountOfBig(n)
}

func amountOfBig(n *big.Int) Amount {
	if n.BitLen() > 127 {
		if n.Sign() < 0 {
			return smallest
		}
		return largest
	}
	magnitude := new(big.Int).Abs(n)
	lo := new(big.Int).And(magnitude, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi := new(big.Int).Rsh(magnitude, 64).Uint64()
	a := Amount{hi: int64(hi), lo: lo}
	if n.Sign() < 0 {
		return a.negated()
	}
	return a
}

func (a Amount) negated() Amount {
	return Amount{}.Sub(a)
}

var (
	largest  = Amount{hi: math.MaxInt64, lo: math.MaxUint64}
	smallest = Amount{hi: math.MinInt64}
)

// Add returns a + b, or the largest or smallest Amount where that is too much.
func (a Amount) Add(b Amount) Amount {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(uint64(a.hi), uint64(b.hi), carry)
	sum := Amount{hi: int64(hi), lo: lo}
	if (a.hi < 0) == (b.hi < 0) && (sum.hi < 0) != (a.hi < 0) {
		return end(a)
	}
	return sum
}

// Sub returns a - b, or the largest or smallest Amount where that is too much.
func (a Amount) Sub(b Amount) Amount {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(uint64(a.hi), uint64(b.hi), borrow)
	difference := Amount{hi: int64(hi), lo: lo}
	if (a.hi < 0) != (b.hi < 0) && (difference.hi < 0) != (a.hi < 0) {
		return end(a)
	}
	return difference
}

// end is what lies furthest on a's side of zero.
func end(a Amount) Amount {
	if a.hi < 0 {
		return smallest
	}
	return largest
}

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b.
func (a Amount) Cmp(b Amount) int {
	switch {
	case a.hi < b.hi || a.hi == b.hi && a.lo < b.lo:
		return -1
	case a == b:
		return 0
	default:
		return 1
	}
}

// IsZero says whether a is nothing.
func (a Amount) IsZero() bool {
	return a == Amount{}
}

// Int64 returns a in whole units, rounded towards zero, and the largest or
// smallest int64 where it does not fit. It is for showing an amount, not for
// comparing.
func (a Amount) Int64() int64 {
	if a.hi < 0 {
		n := a.negated()
		if n.hi < 0 || n.hi >= billionths/2 {
			return math.MinInt64
		}
		quotient, _ := bits.Div64(uint64(n.hi), n.lo, billionths)
		return -int64(quotient)
	}
	if a.hi >= billionths/2 {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(uint64(a.hi), a.lo, billionths)
	return int64(quotient)
}
