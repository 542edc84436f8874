//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// process is a member process.
type process struct {
	member
	cmd    *exec.Cmd
	output string // the file with its output
	// Closed when the process has ended and err is set.
	ended chan struct{}
	err   error

	// Only the goroutine of the keeper uses the following fields.
	frozen, killed, termed bool
	leaves                 bool // it is not replaced
}

// start runs this program as a member. It sends ended processes to exits.
func start(m member, dir string, exits chan<- *process) (*process, error) {
	spec, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{member: m, output: filepath.Join(dir, m.Name+".txt"), ended: make(chan struct{})}
	output, err := os.Create(p.output)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(program)
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(spec))
	p.cmd.Stdout, p.cmd.Stderr = output, output
	endWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// The kernel ends a member with the thread that started it, so keep this thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = output.Close() // the member has its own handle
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		close(p.ended)
		exits <- p
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start member %s: %w", m.Name, err)
	}
	return p, nil
}

// signal sends a signal to a process that has not ended. It never reaches another process with the
// same number.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to member %s: %w", s, p.Name, err)
	}
	return nil
}

// complaint describes an unexpected end of the process, or returns "".
func (p *process) complaint() string {
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case p.killed && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return ""
	case p.termed && p.err == nil:
		return ""
	case p.termed && status.Signaled() && status.Signal() == syscall.SIGTERM:
		// The signal came before the member was ready for it.
		return ""
	}
	how := "exit code " + strconv.Itoa(p.cmd.ProcessState.ExitCode())
	if status.Signaled() {
		how = status.Signal().String()
	}
	return fmt.Sprintf("member %s ended by itself (%s): see %s", p.Name, how, p.output)
}
