package dynamolocal

import (
	"os/exec"
	"syscall"
)

// detach gives the child a group of its own and has the kernel end it when this process dies
// without stopping it. SIGTERM rather than SIGKILL, as the docker client passes it on to the
// container.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
