//go:build unix && !linux

package dynamolocal

import (
	"os/exec"
	"syscall"
)

// detach gives the child a group of its own. These systems have no signal at the death of a parent.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
