//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails only for wrong arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
