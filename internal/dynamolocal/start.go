package dynamolocal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout is for a JVM on a busy machine; it usually takes two seconds.
	startTimeout = 60 * time.Second
	pollInterval = 50 * time.Millisecond // between two probes during the start
	stopGrace    = 10 * time.Second      // from SIGTERM to SIGKILL
	portAttempts = 5                     // number of starts if another process takes the port
)

// missingError reports that this machine lacks a source. A source that exists but fails has another
// error.
type missingError string

func (e missingError) Error() string { return string(e) }

func missing(err error) bool {
	var m missingError
	return errors.As(err, &m)
}

// errPortTaken reports that another process took the port during the start.
var errPortTaken = errors.New("the port is taken")

// Options configures [Start]. The zero value uses the endpoint that the environment names, or
// starts an emulator in memory on a free port.
type Options struct {
	// Port is the port on which the emulator listens. Default: 0, which selects a free one.
	Port int

	// DBPath is a folder for the tables, so that the next start with the same folder finds them.
	// Default: empty, which keeps them in memory.
	DBPath string

	// Private starts an emulator even if the environment names an endpoint, for a test that stops
	// and restarts it. Port and DBPath imply it, because a running server accepts neither.
	Private bool

	// Notes receives a line for each slow step, such as the download, and for each source that is
	// skipped. Default: nil, which discards the lines.
	Notes io.Writer
}

func (o Options) private() bool { return o.Private || o.Port != 0 || o.DBPath != "" }

func (o Options) notef(format string, args ...any) {
	if o.Notes != nil {
		_, _ = fmt.Fprintf(o.Notes, "dynamolocal: "+format+"\n", args...)
	}
}

// Server is a running DynamoDB Local.
type Server struct {
	// Endpoint is its URL, such as http://127.0.0.1:41234.
	Endpoint string

	process  *process // nil if it was not started here
	port     int
	kill     func() // kills the process
	remove   func() // removes the remains of the ended process; may be nil
	again    func(ctx context.Context) (*Server, error)
	stopOnce sync.Once
}

// Start returns a DynamoDB Local that answers, from the first source that works; see the package
// comment. The context limits only the start. A started emulator runs until Stop.
func Start(ctx context.Context, o Options) (*Server, error) { return start(ctx, o, emulator) }

func start(ctx context.Context, o Options, r release) (*Server, error) {
	if endpoint := EndpointFromEnv(); endpoint != "" && !o.private() {
		if err := Check(ctx, endpoint); err != nil {
			return nil, fmt.Errorf("%s: %w", EndpointEnv, err)
		}
		return &Server{Endpoint: endpoint}, nil
	}

	s, dockerErr := startDocker(ctx, o)
	if dockerErr == nil {
		return s, nil
	}
	if ctx.Err() != nil {
		return nil, dockerErr
	}
	if !missing(dockerErr) {
		o.notef("Docker is skipped: %v", dockerErr)
	}

	s, javaErr := startJava(ctx, o, r)
	switch {
	case javaErr == nil:
		return s, nil
	case missing(javaErr):
		return nil, fmt.Errorf(
			"DynamoDB Local needs one of: %s set, a Docker engine, or Java %d+ and npm; here %w, and %w",
			EndpointEnv, javaMin, dockerErr, javaErr)
	default:
		return nil, javaErr
	}
}

// Owned reports whether Start has started this server, so that Stop ends it.
func (s *Server) Owned() bool { return s.process != nil }

// Done returns a channel that is closed when a started emulator has ended, by Stop or by itself. It
// returns nil, which blocks forever, for a server that was not started here.
func (s *Server) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// Log returns the end of the output of a started emulator.
func (s *Server) Log() string {
	if s.process == nil {
		return ""
	}
	return s.process.log()
}

// Stop ends a started emulator and returns after it has ended. Its port and its DBPath are then
// free. It does nothing for a server that was not started here. It may be called again, and by
// several goroutines.
func (s *Server) Stop() { s.end(func() {}) }

// Kill ends the emulator like a crash: the emulator cannot finish anything.
func (s *Server) Kill() { s.end(s.kill) }

func (s *Server) end(first func()) {
	s.stopOnce.Do(func() {
		if s.process == nil {
			return
		}
		first()
		s.process.stop(stopGrace)
		if s.remove != nil {
			s.remove()
		}
	})
}

// launch runs command on a port until the emulator answers there.
//
// Choosing a free port and listening on it are two steps. Another process, often another emulator
// that starts at the same moment, can take the port in between. A DynamoDB Local that cannot listen
// prints the reason and hangs, while the other one answers the probes. So each start passes its own
// origin as -cors. It is ready only when the answer allows exactly that origin.
func launch(ctx context.Context, port int, command func(port int, origin string) *exec.Cmd) (*Server, error) {
	for attempt := 1; ; attempt++ {
		p := port
		if p == 0 {
			var err error
			if p, err = freePort(); err != nil {
				return nil, err
			}
		}
		s, err := launchOn(ctx, p, command)
		if errors.Is(err, errPortTaken) && port == 0 && attempt < portAttempts {
			continue
		}
		return s, err
	}
}

func launchOn(ctx context.Context, port int, command func(port int, origin string) *exec.Cmd) (*Server, error) {
	origin := "http://" + strings.ToLower(rand.Text()) + ".invalid"
	s := &Server{Endpoint: "http://127.0.0.1:" + strconv.Itoa(port), port: port}
	p, err := startLogged(command(port, origin))
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: %w", err)
	}
	s.process = p
	s.kill = func() { p.signal(syscall.SIGKILL) }
	if err := s.awaitReady(ctx, origin); err != nil {
		s.Stop()
		if ctx.Err() != nil {
			// The caller gave up, so the output explains nothing.
			return nil, fmt.Errorf("start DynamoDB Local: %w", err)
		}
		return nil, fmt.Errorf("start DynamoDB Local on port %d: %w; it printed:\n%s", port, err, s.Log())
	}
	return s, nil
}

// bindFailure matches the messages of Jetty and Docker about a port that is not free.
var bindFailure = regexp.MustCompile(`(?i)failed to bind|address already in use|port is already allocated`)

func (s *Server) awaitReady(ctx context.Context, origin string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it does not answer after %s", startTimeout))
	defer cancel()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		if allowed, err := probe(ctx, s.Endpoint, origin); err == nil && allowed == origin {
			return nil
		}
		if bindFailure.MatchString(s.Log()) {
			return errPortTaken
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.process.done:
			if bindFailure.MatchString(s.Log()) {
				return errPortTaken
			}
			return fmt.Errorf("it ended: %w", s.process.exit())
		case <-poll.C:
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
