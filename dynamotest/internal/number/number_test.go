package number_test

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/number"
)

func TestANumberIsWrittenInFull(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 125)
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "+0": "0", "00": "0", "0.0": "0", "0e999": "0", "-0.0e-5": "0", "0e2147483647": "0",
		"1": "1", "+1": "1", "-1": "-1", "01": "1", "001.100": "1.1", "1.": "1", ".1": "0.1", "-.5": "-0.5",
		"1e5": "100000", "1E+5": "100000", "1e-5": "0.00001", "1e00000000000000000005": "100000", "123e-3": "0.123",
		"1e125":                   "1" + zeros,
		"-1e125":                  "-1" + zeros,
		"1e-130":                  "0.0000" + zeros + "1",
		"1.23e-130":               "0.0000" + zeros + "123",
		strings.Repeat("9", 38):   strings.Repeat("9", 38),
		"1" + zeros + ".00":       "1" + zeros,
		"00" + zeros + "1e1":      "10",
		"1234567890e30":           "1234567890" + zeros[:30],
		"-12.3400":                "-12.34",
		strings.Repeat("0", 1000): "0",
	} {
		n, err := number.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, n.String(), text)
	}
}

func TestWhatIsNoNumberIsRefused(t *testing.T) {
	t.Parallel()
	const (
		none      = "The parameter cannot be converted to a numeric value"
		digits    = "Attempting to store more than 38 significant digits in a Number"
		overflow  = "Number overflow. Attempting to store a number with magnitude larger than supported range"
		underflow = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
	)
	for text, want := range map[string]string{
		"": none, ".": none + ": .", "-": none + ": -", "+": none + ": +", "e5": none + ": e5", "1e": none + ": 1e",
		"1e+": none + ": 1e+", " 1": none + ":  1", "1 ": none + ": 1 ", "0x1": none + ": 0x1", "1_0": none + ": 1_0",
		"NaN": none + ": NaN", "Infinity": none + ": Infinity", "1f": none + ": 1f", "--1": none + ": --1",
		"+-1": none + ": +-1", "1e1.5": none + ": 1e1.5", "1,5": none + ": 1,5", "1.2.3": none + ": 1.2.3",
		"1e2147483648": none + ": 1e2147483648", "1e--5": none + ": 1e--5", "1e99999999999999999999": none + ": 1e99999999999999999999",
		"1e_5":                           none + ": 1e_5",
		"1e126":                          overflow,
		"-1e126":                         overflow,
		"10e125":                         overflow,
		"1e2147483647":                   overflow,
		"1e-131":                         underflow,
		"-0.1e-130":                      underflow,
		"1e-2147483647":                  underflow,
		strings.Repeat("1", 39):          digits,
		strings.Repeat("1", 39) + "e99":  digits,
		"0." + strings.Repeat("1", 39):   digits,
		strings.Repeat("1", 39) + "e999": digits,
	} {
		_, err := number.Parse(text)
		var api smithy.APIError
		require.ErrorAs(t, err, &api, text)
		assert.Equal(t, "ValidationException", api.ErrorCode(), text)
		assert.Equal(t, want, api.ErrorMessage(), text)
	}
}

func TestTheTextOfANumberReadsAsTheNumber(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, text string, n number.Number) {
		again, err := number.Parse(n.String())
		require.NoError(t, err)
		require.Equal(t, n, again, text)
		require.Zero(t, rational(t, text).Cmp(rational(t, n.String())), text)
	})
}

func TestNumbersCompareAsMathBigDoes(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b number.Number) {
		want := rational(t, a.String()).Cmp(rational(t, b.String()))
		require.Equal(t, want, number.Compare(a, b), "%s and %s", a, b)
		require.Equal(t, want, bytes.Compare(a.AppendKey(nil), b.AppendKey(nil)), "keys of %s and %s", a, b)
	})
}

func TestKeysAreAppended(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, text string, n number.Number) {
		require.Equal(t, append([]byte("prefix"), n.AppendKey(nil)...), n.AppendKey([]byte("prefix")), text)
	})
}

func TestNumbersAddAndSubtractAsMathBigDoes(t *testing.T) {
	t.Parallel()
	taken := 0
	check := func(t *testing.T, exact *big.Rat, got number.Number, err error) {
		t.Helper()
		want, wantErr := number.Parse(exact.FloatString(200)) // 130 places and 38 digits are fewer
		require.Equal(t, wantErr, err)
		require.Equal(t, want, got)
		if err == nil {
			taken++
		}
	}
	eachPair(t, func(t *testing.T, a, b number.Number) {
		x, y := rational(t, a.String()), rational(t, b.String())
		sum, err := number.Add(a, b)
		check(t, new(big.Rat).Add(x, y), sum, err)
		difference, err := number.Sub(a, b)
		check(t, new(big.Rat).Sub(x, y), difference, err)
	})
	assert.Greater(t, taken, 1000, "sums that are no error")
}

func TestSumsKeepWithinTheLimits(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 38)
	for _, test := range []struct{ a, b, want string }{
		{nines, "1", "1e38"},
		{nines, "0.1", "Attempting to store more than 38 significant digits in a Number"},
		{"9.9e125", "1e125", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"9.9e125", "-9e125", "9e124"},
		{"1.5e-129", "-1.4e-129", "1e-130"},
		{"1.55e-129", "-1.54e-129", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
		{"5", "-5", "0"},
	} {
		sum, err := number.Add(parse(t, test.a), parse(t, test.b))
		if err != nil {
			assert.ErrorContains(t, err, test.want)
			continue
		}
		assert.Equal(t, parse(t, test.want), sum, "%s + %s", test.a, test.b)
	}
}

func TestTheSizeOfANumberGrowsByAByteForTwoDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"0": 1, "1": 2, "-1": 3, "10": 2, "12": 2, "100": 2, "123": 3, "1234": 3, "12345": 4, "-12345": 5, "1.5": 3,
		"12.5": 3, "0.5": 2, "0.05": 2, "0.005": 2, "1.23": 3, "12.34": 3, "123.4": 4, "1e10": 2, "1e11": 2, "1e100": 2,
		"1e-100": 2, "1e-101": 2, "1000001": 5, "1010": 3, "10101": 4, "101010": 4,
		strings.Repeat("9", 37): 20, strings.Repeat("9", 38): 20, "-" + strings.Repeat("9", 38): 21,
	} {
		assert.Equal(t, want, parse(t, text).Size(), text)
	}
}

func each(t *testing.T, check func(t *testing.T, text string, n number.Number)) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := randomText(random)
		check(t, text, parse(t, text))
	}
}

// eachPair checks pairs of numbers that are far apart, close to each other, and equal.
func eachPair(t *testing.T, check func(t *testing.T, a, b number.Number)) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	numbers := make([]number.Number, 0, 70)
	for _, text := range []string{"0", "1", "-1", "12", "123", "-12", "-123", "1e125", "-1e125", "1e-130", "-1e-130", strings.Repeat("9", 38)} {
		numbers = append(numbers, parse(t, text))
	}
	for len(numbers) < cap(numbers) {
		numbers = append(numbers, parse(t, randomText(random)))
	}
	for _, a := range numbers {
		for _, b := range numbers {
			check(t, a, b)
		}
	}
}

// randomText returns a valid number in a random notation.
func randomText(random *rand.Rand) string {
	digits := make([]byte, 1+random.IntN(38))
	for i := range digits {
		digits[i] = "0123456789"[random.IntN(10)]
	}
	point := random.IntN(len(digits) + 1)
	text := string(slices.Insert(digits, point, '.'))
	exponents := []int{0, random.IntN(8) - 4, random.IntN(170) - 85}
	text += "e" + strconv.Itoa(exponents[random.IntN(len(exponents))])
	return []string{"", "-", "+", "00", "-0"}[random.IntN(5)] + text
}

func parse(t *testing.T, text string) number.Number {
	t.Helper()
	n, err := number.Parse(text)
	require.NoError(t, err, text)
	return n
}

func rational(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	return r
}
