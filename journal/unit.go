package journal

import (
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// timeUnits holds the supported units of stored times.
var timeUnits = map[time.Duration]string{
	time.Second: "seconds", time.Millisecond: "milliseconds", time.Microsecond: "microseconds", time.Nanosecond: "nanoseconds",
}

func validateUnit(unit time.Duration) error {
	if _, known := timeUnits[unit]; unit != 0 && !known {
		return &ConfigError{Field: "OccurredAtUnit", Reason: fmt.Sprintf(
			"is %s: want time.Second, time.Millisecond, time.Microsecond or time.Nanosecond", unit)}
	}
	return nil
}

// unitOf returns the unit in which a stored time lies between the years 2001 and 2286. In every
// other unit it lies outside of these years. It returns false for other values, such as those of
// event-store-adapter-js, which are below 1,000.
func unitOf(stored types.AttributeValue) (time.Duration, bool) {
	value, ok := intOf(stored)
	if !ok {
		return 0, false
	}
	const from, to = 1_000_000_000, 10_000_000_000 // seconds since 1970
	for unit := range timeUnits {
		if perSecond := int64(time.Second / unit); value/perSecond >= from && value/perSecond < to {
			return unit, true
		}
	}
	return 0, false
}

// storedTime converts milliseconds since 1970 to the unit of the table. It rounds down, and does
// not overflow.
func (c *tableSettings) storedTime(millis int64) int64 {
	if c.OccurredAtUnit >= time.Millisecond {
		return floorDiv(millis, int64(c.OccurredAtUnit/time.Millisecond))
	}
	return saturatedProduct(millis, int64(time.Millisecond/c.OccurredAtUnit))
}

// lastStoredTime returns the largest stored time within a millisecond.
func (c *tableSettings) lastStoredTime(millis int64) int64 {
	if c.OccurredAtUnit >= time.Millisecond || millis == math.MaxInt64 {
		return c.storedTime(millis)
	}
	next := c.storedTime(millis + 1)
	if next == math.MaxInt64 {
		return next
	}
	return next - 1
}

// millisOf converts a time of the table to milliseconds since 1970. It rounds down, and does not
// overflow.
func (c *tableSettings) millisOf(stored int64) int64 {
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
