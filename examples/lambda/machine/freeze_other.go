//go:build !unix

package machine

// Without signals, a process goes on between invocations.
func (*process) freeze() {}
func (*process) thaw()   {}
