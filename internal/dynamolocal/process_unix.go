//go:build unix

package dynamolocal

import (
	"os"
	"syscall"
)

// signalGroup also signals the children of the child, because `go run` and `go test` do not pass
// SIGTERM on.
func signalGroup(p *os.Process, sig syscall.Signal) {
	_ = syscall.Kill(-p.Pid, sig) // it fails only if the group has ended
}
