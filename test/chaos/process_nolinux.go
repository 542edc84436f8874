//go:build unix && !linux

package chaos

import (
	"os/exec"
	"syscall"
)

// endWithParent only keeps interrupts of the terminal away. These systems have no signal for the
// death of a parent.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
