//go:build !unix

package main

import "time"

var began = time.Now()

// cpuTime returns the real time. It is close enough to the processor time on an idle machine.
func cpuTime() time.Duration { return time.Since(began) }
