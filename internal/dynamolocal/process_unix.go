//go:build unix

package dynamolocal

import (
	"os"
	"syscall"
)

// signalGroup reaches the children of the child too: `go run` and `go test` do not pass SIGTERM on.
func signalGroup(p *os.Process, sig syscall.Signal) {
	_ = syscall.Kill(-p.Pid, sig) // fails only when the group has ended, which is what the caller wants
}
