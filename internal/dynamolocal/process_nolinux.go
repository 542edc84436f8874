//go:build unix && !linux

package dynamolocal

import (
	"os/exec"
	"syscall"
)

// detach puts the child into its own process group. These systems cannot end it with its parent.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
