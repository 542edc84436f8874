// Package number implements DynamoDB's numbers: decimals of up to 38 digits between 1E-130 and
// 9.99...E+125.
//
// Source: Amazon DynamoDB Developer Guide, "Supported data types and naming rules", Number.
package number

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// Limits of a number.
const (
	MaxDigits   = 38
	maxExponent = 125  // of the first digit: 9.99...E+125
	minExponent = -130 // of the first digit: 1E-130
)

// Number is a decimal: 0.digits x 10^point, with a sign. The digits have no zeros at either end, so
// equal numbers have equal fields. The zero Number is 0.
type Number struct {
	negative bool
	digits   string
	point    int
}

// Parse reads a number like DynamoDB. Errors are ValidationExceptions.
func Parse(text string) (Number, error) {
	var n Number
	rest := text
	if strings.HasPrefix(rest, "-") {
		n.negative, rest = true, rest[1:]
	} else {
		rest = strings.TrimPrefix(rest, "+")
	}
	mantissa, exponent := rest, 0
	if at := strings.IndexAny(rest, "eE"); at >= 0 {
		// The service reads numbers with Java's BigDecimal, which accepts this range of exponents.
		wide, err := strconv.ParseInt(rest[at+1:], 10, 64)
		if err != nil || wide < -math.MaxInt32 || wide > math.MaxInt32 {
			return Number{}, notANumber(text)
		}
		exponent = int(wide)
		mantissa = rest[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || !onlyDigits(whole) || !onlyDigits(fraction) {
		return Number{}, notANumber(text)
	}
	return n.normal(whole+fraction, len(whole)+exponent)
}

// normal removes the zeros at both ends and checks the limits.
func (n Number) normal(digits string, point int) (Number, error) {
	trimmed := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	if trimmed == "" {
		return Number{}, nil
	}
	switch exponent := point - 1; {
	case len(trimmed) > MaxDigits:
		return Number{}, apierror.Validation("Attempting to store more than 38 significant digits in a Number")
	case exponent > maxExponent:
		return Number{}, apierror.Validation("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case exponent < minExponent:
		return Number{}, apierror.Validation("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	return Number{negative: n.negative, digits: trimmed, point: point}, nil
}

func notANumber(text string) error {
	if text == "" {
		return apierror.Validation("The parameter cannot be converted to a numeric value")
	}
	return apierror.Validation("The parameter cannot be converted to a numeric value: %s", text)
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// String returns the full number, without an exponent and without redundant zeros.
func (n Number) String() string {
	var b strings.Builder
	if n.negative {
		b.WriteByte('-')
	}
	switch {
	case n.digits == "":
		b.WriteByte('0')
	case n.point <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -n.point))
		b.WriteString(n.digits)
	case n.point >= len(n.digits):
		b.WriteString(n.digits)
		b.WriteString(strings.Repeat("0", n.point-len(n.digits)))
	default:
		b.WriteString(n.digits[:n.point])
		b.WriteByte('.')
		b.WriteString(n.digits[n.point:])
	}
	return b.String()
}

// Size returns the size of the number in an item: one byte for two digits, plus one, and plus one
// more for a negative number. Source: Developer Guide, "DynamoDB item sizes and formats", which
// says "approximately".
func (n Number) Size() int {
	if n.digits == "" {
		return 1
	}
	digits := len(n.digits)
	if n.point%2 != 0 {
		digits++ // pairs begin at the decimal point
	}
	size := (digits+1)/2 + 1
	if n.negative {
		size++
	}
	return size
}

// AppendKey appends bytes that sort like the numbers.
func (n Number) AppendKey(dst []byte) []byte {
	if n.digits == "" {
		return append(dst, 1)
	}
	// The first byte distinguishes negative, zero and positive numbers. Then come the magnitude and
	// the digits. For a negative number these bytes are inverted, and a last byte follows that is
	// greater than any inverted digit.
	const bias = 131 // so that the smallest point is above 0
	start := len(dst)
	dst = append(dst, 2, byte((n.point+bias)>>8), byte(n.point+bias))
	dst = append(dst, n.digits...)
	if n.negative {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
		dst[start] = 0
		dst = append(dst, 0xff)
	}
	return dst
}

// Compare returns -1, 0 or 1.
func Compare(a, b Number) int {
	if a.negative != b.negative {
		if a.negative {
			return -1
		}
		return 1
	}
	if a.negative {
		a, b = b, a
	}
	switch {
	case a.digits == "" || b.digits == "":
		return strings.Compare(a.digits, b.digits)
	case a.point != b.point:
		if a.point < b.point {
			return -1
		}
		return 1
	}
	return strings.Compare(a.digits, b.digits)
}

// Add returns a+b. It returns an error if the sum has too many digits or is too large.
func Add(a, b Number) (Number, error) {
	// Add converts both numbers to integers: each is multiplied by the same power of ten.
	power := min(a.point-len(a.digits), b.point-len(b.digits))
	sum := new(big.Int).Add(a.integer(power), b.integer(power))
	var n Number
	if sum.Sign() < 0 {
		n.negative = true
		sum.Neg(sum)
	}
	digits := sum.String()
	return n.normal(digits, len(digits)+power)
}

// Sub returns a-b. It returns errors like Add.
func Sub(a, b Number) (Number, error) {
	if b.digits != "" {
		b.negative = !b.negative
	}
	return Add(a, b)
}

// integer returns the number divided by a power of ten. The result has no fraction.
func (n Number) integer(power int) *big.Int {
	i := new(big.Int)
	if n.digits == "" {
		return i
	}
	i.SetString(n.digits+strings.Repeat("0", n.point-len(n.digits)-power), 10)
	if n.negative {
		i.Neg(i)
	}
	return i
}
