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

// process is a member as its parent sees it.
type process struct {
	member
	cmd    *exec.Cmd
	output string        // the file with what it printed
	ended  chan struct{} // closed when it has ended and err is set
	err    error

	// Of the keeper.
	frozen, killed, termed bool
	leaves                 bool // it is not replaced
}

// start runs this program as a member. Ended processes are passed to exits.
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
		// The kernel ends a member with the thread that started it, so this one is kept.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = output.Close() // the member has it open by itself
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

// signal reaches a process that has not ended, and no other that has got its number.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to member %s: %w", s, p.Name, err)
	}
	return nil
}

// complaint reports what is wrong with how it ended, or nothing.
func (p *process) complaint() string {
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case p.killed && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return ""
	case p.termed && p.err == nil:
		return ""
	case p.termed && status.Signaled() && status.Signal() == syscall.SIGTERM:
		return "" // it came before the member was ready for it
	}
	how := "exit code " + strconv.Itoa(p.cmd.ProcessState.ExitCode())
	if status.Signaled() {
		how = status.Signal().String()
	}
	return fmt.Sprintf("member %s ended by itself (%s): see %s", p.Name, how, p.output)
}
