package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal/journaltype"
)

// UnitNames returns the names of units, separated by commas.
func UnitNames(units ...time.Duration) string {
	names := make([]string, len(units))
	for i, unit := range slices.Sorted(slices.Values(units)) {
		names[i] = TimeUnits[unit]
	}
	return strings.Join(names, " and ")
}

// TimeUnits holds the supported units of stored times.
var TimeUnits = map[time.Duration]string{
	time.Second: "seconds", time.Millisecond: "milliseconds", time.Microsecond: "microseconds", time.Nanosecond: "nanoseconds",
}

// ValidateUnit returns an error for a unit that is not supported.
func ValidateUnit(unit time.Duration) error {
	if _, known := TimeUnits[unit]; unit != 0 && !known {
		return &journaltype.ConfigError{Field: "Classic.OccurredAtUnit", Reason: fmt.Sprintf(
			"is %s: want time.Second, time.Millisecond, time.Microsecond or time.Nanosecond", unit)}
	}
	return nil
}

// UnitOf returns the unit in which a stored time lies between the years 2001 and 2286. In every
// other unit it lies outside of these years. It returns false for other values, such as those of
// event-store-adapter-js, which are below 1,000.
func UnitOf(stored types.AttributeValue) (time.Duration, bool) {
	value, ok := IntOf(stored)
	if !ok {
		return 0, false
	}
	const from, to = 1_000_000_000, 10_000_000_000 // seconds since 1970
	for unit := range TimeUnits {
		if perSecond := int64(time.Second / unit); value/perSecond >= from && value/perSecond < to {
			return unit, true
		}
	}
	return 0, false
}

// StoredTime converts milliseconds since 1970 to the unit of the table. It rounds down, and does
// not overflow.
func (c *Settings) StoredTime(millis int64) int64 {
	if c.OccurredAtUnit >= time.Millisecond {
		return floorDiv(millis, int64(c.OccurredAtUnit/time.Millisecond))
	}
	return saturatedProduct(millis, int64(time.Millisecond/c.OccurredAtUnit))
}

// LastStoredTime returns the largest stored time within a millisecond.
func (c *Settings) LastStoredTime(millis int64) int64 {
	if c.OccurredAtUnit >= time.Millisecond || millis == math.MaxInt64 {
		return c.StoredTime(millis)
	}
	next := c.StoredTime(millis + 1)
	if next == math.MaxInt64 {
		return next
	}
	return next - 1
}

// MillisOf converts a time of the table to milliseconds since 1970. It rounds down, and does not
// overflow.
func (c *Settings) MillisOf(stored int64) int64 {
	if c.OccurredAtUnit >= time.Millisecond {
		return saturatedProduct(stored, int64(c.OccurredAtUnit/time.Millisecond))
	}
	return floorDiv(stored, int64(time.Millisecond/c.OccurredAtUnit))
}

func floorDiv(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}

// saturatedProduct multiplies and limits the result to the range of int64. b must be positive.
func saturatedProduct(a, b int64) int64 {
	switch {
	case a > math.MaxInt64/b:
		return math.MaxInt64
	case a < math.MinInt64/b:
		return math.MinInt64
	default:
		return a * b
	}
}
