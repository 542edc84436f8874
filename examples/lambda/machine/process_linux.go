package machine

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end the process with this one, even if it is frozen.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
