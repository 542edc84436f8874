package machine

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Account is the account and Region the region of everything in this package.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// Config configures a [Function].
type Config struct {
	// Name of the function. The process finds it as _HANDLER, too.
	Name string
	// Command is the program of the function and its arguments. Default: this program.
	Command []string
	// Env is the environment of the processes, beside the variables that Lambda sets.
	Env []string
	// Timeout of an invocation. A process that takes longer is killed. Default: 3 seconds.
	Timeout time.Duration
	// InitTimeout is the time from the start of a process to its first request for an invocation.
	// Default: 10 seconds.
	InitTimeout time.Duration
	// Concurrency is the reserved concurrency: the largest number of environments. Default: 1.
	Concurrency int
	// Output receives what the processes print. Default: none.
	Output io.Writer
}

func (c *Config) setDefaults() error {
	if len(c.Command) == 0 {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		c.Command = []string{program}
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Second
	}
	if c.InitTimeout == 0 {
		c.InitTimeout = 10 * time.Second
	}
	c.Concurrency = max(1, c.Concurrency)
	if c.Output == nil {
		c.Output = io.Discard
	}
	c.Output = &lines{to: c.Output}
	return nil
}

// lines is a writer for several processes.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// ErrThrottled reports that all environments that the reserved concurrency allows are busy.
var ErrThrottled = errors.New("the function is throttled: it has no more concurrency")

// Types of an [Error] that the function has not reported itself.
const (
	TimedOut = "Sandbox.Timedout"  // the process was killed at the time-out
	Exited   = "Runtime.ExitError" // the process has ended
)

// Error is the error of an invocation. The type and message are those that the function has
// reported, or describe the end of its process.
type Error struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (e *Error) Error() string { return e.Type + ": " + e.Message }

// Stats counts what has happened to a function.
type Stats struct {
	Invocations, Throttles, Kills int
	Errors                        map[string]int // by type
	// Starts are the times from the start of each process to its first request for an invocation.
	Starts []time.Duration
}

// Function is a function in Lambda. It is safe for concurrent use.
type Function struct {
	config  Config
	slots   chan struct{} // holds an element for each invocation
	closing context.Context
	close   func()

	mu         sync.Mutex
	idle, busy []*environment
	stats      Stats
}

// NewFunction returns a function. It starts no process before the first invocation.
func NewFunction(c Config) (*Function, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	f := &Function{config: c, slots: make(chan struct{}, c.Concurrency), stats: Stats{Errors: map[string]int{}}}
	var cancel context.CancelFunc
	f.closing, cancel = context.WithCancel(context.Background())
	f.close = sync.OnceFunc(func() {
		cancel()
		for range c.Concurrency { // after the invocations, and there are no others then
			f.slots <- struct{}{}
		}
		for e := f.pop(); e != nil; e = f.pop() {
			e.close()
		}
	})
	return f, nil
}

// Invoke invokes the function, and writes the response to a writer as it arrives. It returns when
// the process asks for another invocation, or has ended. It kills the process at the time-out, and
// if ctx ends or the function is closed. After it has returned, nothing is written to the writer.
//
// Errors: [ErrThrottled], [*Error], and the error of ctx.
func (f *Function) Invoke(ctx context.Context, payload []byte, response io.Writer) error {
	select {
	case f.slots <- struct{}{}:
	default:
		f.count(func(s *Stats) { s.Throttles++ })
		return ErrThrottled
	}
	defer func() { <-f.slots }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.closing, cancel)()
	f.count(func(s *Stats) { s.Invocations++ })
	e, err := f.take(ctx)
	if err == nil {
		err = e.invoke(ctx, &invocation{id: uuid.NewString(), payload: payload, response: response})
		f.release(e)
	}
	var failed *Error
	if errors.As(err, &failed) {
		f.count(func(s *Stats) { s.Errors[failed.Type]++ })
	}
	return err
}

// take returns an environment that has waited, or a new one.
func (f *Function) take(ctx context.Context) (*environment, error) {
	for {
		e := f.pop()
		if e == nil {
			break
		}
		if !e.process.hasEnded() {
			return e, nil
		}
		f.release(e)
	}
	began := time.Now()
	e, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	f.count(func(s *Stats) { s.Starts = append(s.Starts, time.Since(began)) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = append(f.busy, e)
	return e, nil
}

// pop makes the environment busy that became idle last.
func (f *Function) pop() *environment {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) == 0 {
		return nil
	}
	e := f.idle[len(f.idle)-1]
	f.idle = f.idle[:len(f.idle)-1]
	f.busy = append(f.busy, e)
	return e
}

// release keeps an environment whose process runs, and closes others.
func (f *Function) release(e *environment) {
	f.mu.Lock()
	f.busy = slices.DeleteFunc(f.busy, func(b *environment) bool { return b == e })
	ended := e.process.hasEnded()
	if !ended {
		f.idle = append(f.idle, e)
	}
	f.mu.Unlock()
	if ended {
		e.close()
	}
}

// Kill kills the process of one of the running invocations, as a crash would. It does nothing if
// there is none.
func (f *Function) Kill(pick func(n int) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.busy) > 0 {
		_ = f.busy[pick(len(f.busy))].process.cmd.Process.Kill() // an error means that it has ended
		f.stats.Kills++
	}
}

// Stats returns what has happened until now.
func (f *Function) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Starts, s.Errors = slices.Clone(s.Starts), maps.Clone(s.Errors)
	return s
}

func (f *Function) count(change func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.stats)
}

// Close ends all environments. Running invocations end with their processes, and later ones are
// throttled.
func (f *Function) Close() { f.close() }
