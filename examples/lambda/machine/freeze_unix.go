//go:build unix

package machine

import "syscall"

// freeze stops the process until it is thawed. An error means that it has ended.
func (p *process) freeze() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) thaw() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }
