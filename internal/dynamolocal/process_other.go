//go:build !unix

package dynamolocal

import (
	"os"
	"os/exec"
	"syscall"
)

func detach(*exec.Cmd) {}

// signalGroup ends the child whatever the signal, the only one that these systems know.
func signalGroup(p *os.Process, _ syscall.Signal) {
	_ = p.Kill() // fails only when it has ended, which is what the caller wants
}
