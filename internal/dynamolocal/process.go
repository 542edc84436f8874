package dynamolocal

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a child in a process group of its own, so that an interrupt typed at the terminal does
// not reach it: the emulator must outlive the tests that are ending.
type process struct {
	cmd  *exec.Cmd
	tail *tail
	done chan struct{} // closed when the child has ended and err is set
	err  error
}

// startLogged starts cmd and keeps the end of what it prints.
func startLogged(cmd *exec.Cmd) (*process, error) {
	t := &tail{}
	cmd.Stdout, cmd.Stderr = t, t
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	p.tail = t
	return p, nil
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	detach(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the signal that ends the child with its parent when the *thread* that started
		// the child ends, and the Go runtime ends idle threads. So this goroutine keeps its thread
		// until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// signal sends sig to the child's group. A child that has ended is left alone, as its number may be
// another's by now.
func (p *process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		signalGroup(p.cmd.Process, sig)
	}
}

// stop asks the child to end, ends it by force after the grace time, and returns when it has ended.
func (p *process) stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// exit is how the ended child ended, never nil.
func (p *process) exit() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// exitCode is the code of the ended child as a shell reports it: 128 and the signal, if one ended
// it.
func (p *process) exitCode() int {
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

func (p *process) log() string {
	if p.tail == nil {
		return ""
	}
	return p.tail.String()
}

// tailSize is how much of an emulator's output is kept: a stack trace and what led to it.
const tailSize = 64 << 10

// tail is a writer that remembers the last tailSize bytes.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if extra := len(t.buf) - tailSize; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
