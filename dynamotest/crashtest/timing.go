package crashtest

import (
	"time"

	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber"
)

// Timing sets the times of a subscriber for tests, as millrace.Config.Subscriber: leases of 1
// second, polls each 50 ms, pauses of at most 100 ms between retries, and half a second to close.
// So an instance takes over the work of a crashed one after a second.
func Timing(_ string, c *subscriber.Config) {
	c.Timing.LeaseDuration = time.Second
	c.Timing.PollInterval, c.Timing.MaxPollInterval = 50*time.Millisecond, 100*time.Millisecond
	c.Timing.CommitInterval = 50 * time.Millisecond
	c.NackResendSleep, c.MaxNackResendSleep = 10*time.Millisecond, 100*time.Millisecond
	c.CloseTimeout = 500 * time.Millisecond
}

// ProcessTiming returns the times of a process manager for tests: polls each 50 ms, and a retry of
// unsent commands and unhandled timeouts after 1 second.
func ProcessTiming() process.Config {
	return process.Config{PollInterval: 50 * time.Millisecond, RetryAfter: time.Second}
}
