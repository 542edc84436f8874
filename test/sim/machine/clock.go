package machine

import (
	"fmt"
	"time"
)

// clock is the time of one run.
type clock struct{ now int64 }

// epoch is when programs start.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// mostTime is how long a program may run by its own clock: one that waits for what never comes
// would run for ever.
const mostTime = 6 * time.Hour

// read takes a tenth of a microsecond.
func (c *clock) read() int64 {
	c.now += 100
	return c.now
}

func (c *clock) wall() (sec int64, nsec int32) {
	now := c.read()
	return now / int64(time.Second), int32(now % int64(time.Second))
}

// pass lets time pass. It ends a program that has had enough of it: a panic of the host is an error
// of the run.
func (c *clock) pass(ns int64) {
	if c.now += ns; c.now-epoch > int64(mostTime) {
		panic(fmt.Errorf("the program has run for more than %v by its own clock", mostTime))
	}
}
