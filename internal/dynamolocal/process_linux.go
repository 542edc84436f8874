package dynamolocal

import (
	"os/exec"
	"syscall"
)

// detach puts the child into its own process group. The kernel ends the child when this process
// dies without stopping it. The signal is SIGTERM, because the docker client passes it on to the
// container but not SIGKILL.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
