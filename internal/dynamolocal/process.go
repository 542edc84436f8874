package dynamolocal

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a child in its own process group, so that an interrupt at the terminal does not reach
// it: the emulator must outlive the tests that are ending.
type process struct {
	cmd  *exec.Cmd
	tail *tail
	done chan struct{} // closed when the child has ended and err is set
	err  error
}

// startLogged starts cmd and keeps the end of its output.
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
		// Linux sends the signal for the end of the parent when the *thread* that started the child
		// ends, and the Go runtime ends idle threads. So this goroutine keeps its thread until the
		// child has ended.
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

// signal sends sig to the child's group, unless the child has ended. Another process may have its
// number by then.
func (p *process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		signalGroup(p.cmd.Process, sig)
	}
}

// stop asks the child to end, kills it after the grace time, and returns after it has ended.
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

// exit returns how the ended child ended. It is never nil.
func (p *process) exit() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// exitCode returns the exit code of the ended child as a shell reports it: 128 plus the signal if a
// signal ended it.
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

// tailSize is the number of bytes of an emulator's output that are kept. A stack trace fits in.
const tailSize = 64 << 10

// tail is a writer that keeps the last tailSize bytes.
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
