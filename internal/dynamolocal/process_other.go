//go:build !unix

package dynamolocal

import (
	"os"
	"os/exec"
	"syscall"
)

func detach(*exec.Cmd) {}

// signalGroup kills the child for any signal, because these systems have no other one.
func signalGroup(p *os.Process, _ syscall.Signal) {
	_ = p.Kill() // it fails only if the child has ended
}
