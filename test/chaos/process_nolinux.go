//go:build unix && !linux

package chaos

import (
	"os/exec"
	"syscall"
)

// endWithParent only keeps the terminal's interrupts away. These systems have no signal at the
// death of a parent.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
