package chaos

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end a member with the thread that started it, even if it is frozen
// then.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
