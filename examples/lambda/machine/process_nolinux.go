//go:build !linux

package machine

import "os/exec"

// endWithParent does nothing: only Linux has a signal for the end of a parent.
func endWithParent(*exec.Cmd) {}
