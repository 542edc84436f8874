//go:build !unix

package main

import "time"

var began = time.Now()

// cpuTime is the time on the wall, which is near enough on a machine that does nothing else.
func cpuTime() time.Duration { return time.Since(began) }
