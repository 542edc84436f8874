package machine

import (
	"io"
	"os/exec"
	"runtime"
	"time"
)

// process is a process of a function.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// start starts a process. The caller kills it.
func start(command, env []string, output io.Writer) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.WaitDelay = time.Second // for the output of its children
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, output, output
	endWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// The kernel ends the process with the thread that has started it, so keep this thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // how it has ended is in cmd.ProcessState
		close(p.ended)
	}()
	return p, <-started
}

// kill ends the process, also a frozen one, and returns after it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
