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
	startTimeout = 60 * time.Second      // for a JVM on a busy machine; usually it is up in two seconds
	pollInterval = 50 * time.Millisecond // between two probes while it comes up
	stopGrace    = 10 * time.Second      // from the request to end to the kill
	portAttempts = 5                     // starts, when another process takes the port in between
)

// missingError says that this machine does not have a source, as opposed to one that is there and
// fails.
type missingError string

func (e missingError) Error() string { return string(e) }

func missing(err error) bool {
	var m missingError
	return errors.As(err, &m)
}

// errPortTaken is a start that lost its port to another process.
var errPortTaken = errors.New("the port is taken")

// Options are the settings of [Start]. The zero value is an emulator in memory on a free port, or
// the one that the environment names.
type Options struct {
	// Port is the port to listen on; 0 takes a free one.
	Port int

	// DBPath is a folder to keep the tables in, so that the next start with the same folder finds
	// them. Empty keeps them in memory.
	DBPath string

	// Private starts an emulator even if the environment names an endpoint, for a test that stops
	// and restarts it. Port and DBPath imply it, because a server that runs already takes neither.
	Private bool

	// Notes receives a line for what takes time or is passed over, such as the download. Nil
	// discards.
	Notes io.Writer
}

func (o Options) private() bool { return o.Private || o.Port != 0 || o.DBPath != "" }

func (o Options) notef(format string, args ...any) {
	if o.Notes != nil {
		_, _ = fmt.Fprintf(o.Notes, "dynamolocal: "+format+"\n", args...)
	}
}

// Server is a DynamoDB Local that answers at Endpoint.
type Server struct {
	// Endpoint is its URL, such as http://127.0.0.1:41234.
	Endpoint string

	process  *process // nil when it was there already
	port     int
	kill     func() // has the process end at once
	remove   func() // clears away what ending the process may leave; may be nil
	again    func(ctx context.Context) (*Server, error)
	stopOnce sync.Once
}

// Start returns a DynamoDB Local that answers, from the first source that works (see the package
// comment). The context bounds the start alone; a started emulator lives until Stop.
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
		o.notef("Docker is passed over: %v", dockerErr)
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

// Done is closed when a started emulator has ended, be it by Stop or by itself. It is nil, which
// blocks forever, for one that was there already.
func (s *Server) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// Log returns the end of what a started emulator has printed.
func (s *Server) Log() string {
	if s.process == nil {
		return ""
	}
	return s.process.log()
}

// Stop ends a started emulator and returns when it has ended; its port and its DBPath are then
// free. It does nothing to one that was there already. It may be called again, and from several
// goroutines.
func (s *Server) Stop() { s.end(func() {}) }

// Kill is Stop as a crash would do it: the emulator gets no chance to finish anything.
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
// Choosing a free port and listening on it are two steps, so another process, often another
// emulator started at the same moment, can take it in between. DynamoDB Local that cannot listen
// prints why and hangs, while probes are answered by the other one. Hence each start passes an
// origin of its own as -cors and counts as ready only when the answer allows exactly that origin.
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
			return nil, fmt.Errorf("start DynamoDB Local: %w", err) // given up, so its output explains nothing
		}
		return nil, fmt.Errorf("start DynamoDB Local on port %d: %w; it printed:\n%s", port, err, s.Log())
	}
	return s, nil
}

// bindFailure is how Jetty and Docker say that the port is not to be had.
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
