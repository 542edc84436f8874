package chaos

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end a member with the thread that started it, even if the member
// is frozen.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
