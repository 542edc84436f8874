package machine

import (
	"fmt"
	"time"
)

// clock is the time of one run.
type clock struct{ now int64 }

// epoch is the time at which programs start.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// mostTime limits the time of a program by its own clock. A program that waits for something that
// never happens would run forever.
const mostTime = 6 * time.Hour

// read returns the time. It takes a tenth of a microsecond.
func (c *clock) read() int64 {
	c.now += 100
	return c.now
}

func (c *clock) wall() (sec int64, nsec int32) {
	now := c.read()
	return now / int64(time.Second), int32(now % int64(time.Second))
}

// pass lets time pass. It ends a program that exceeds its time: a panic of the host is an error of
// the run.
func (c *clock) pass(ns int64) {
	if c.now += ns; c.now-epoch > int64(mostTime) {
		panic(fmt.Errorf("the program has run for more than %v by its own clock", mostTime))
	}
}
