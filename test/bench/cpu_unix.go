//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails for bad arguments alone
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
