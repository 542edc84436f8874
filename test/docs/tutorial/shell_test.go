//go:build unix

package tutorial

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shell runs the commands of the tutorial: cd, mkdir, export, curl, and programs that it finds. It
// implements the first four itself, so that the test needs nothing but Go.
type shell struct {
	dir     string
	env     []string
	replace *strings.Replacer // in commands
	running map[string]*process
}

// process is a command that is left running.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended

	mu     sync.Mutex
	output bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// run runs the commands of a block, and returns what they print.
func (s *shell) run(ctx context.Context, block string) (output string, err error) {
	var out bytes.Buffer
	for _, command := range commands(block) {
		if err := s.execute(ctx, command, &out); err != nil {
			return out.String(), fmt.Errorf("%s: %w", command, err)
		}
	}
	return out.String(), nil
}

// start runs the commands of a block, and leaves the last one running.
func (s *shell) start(ctx context.Context, block string) (*process, error) {
	all := commands(block)
	last := all[len(all)-1]
	if _, err := s.run(ctx, strings.Join(all[:len(all)-1], "\n")); err != nil {
		return nil, err
	}
	p := &process{ended: make(chan struct{})}
	p.command = s.command(context.WithoutCancel(ctx), words(s.replace.Replace(last)))
	p.command.Stdout, p.command.Stderr = p, os.Stderr
	// Ctrl+C reaches `go run` and its program.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // the exit code of `go run` is not that of its program
	}()
	s.running[last] = p
	return p, nil
}

// interrupt sends Ctrl+C to a running command, and returns what the command has printed.
func (s *shell) interrupt(command string) (output string, err error) {
	p := s.running[command]
	if p == nil {
		return "", fmt.Errorf("%q does not run", command)
	}
	delete(s.running, command)
	if err := syscall.Kill(-p.command.Process.Pid, syscall.SIGINT); err != nil {
		return "", err
	}
	select {
	case <-p.ended:
		return p.printed(), nil
	case <-time.After(30 * time.Second):
		return "", errors.Join(errors.New("it does not stop"), p.kill())
	}
}

func (p *process) kill() error { return syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) }

func (s *shell) close() {
	for _, p := range s.running {
		_ = p.kill()
		<-p.ended
	}
}

// commands returns the commands of a block: its lines, and their parts between &&.
func commands(block string) (all []string) {
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		for part := range strings.SplitSeq(line, "&&") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

var word = regexp.MustCompile(`'([^']*)'|(\S+)`)

// words returns the words of a command. Text in single quotes is one word, even with spaces.
func words(command string) (all []string) {
	for _, found := range word.FindAllStringSubmatch(command, -1) {
		all = append(all, found[1]+found[2])
	}
	return all
}

func (s *shell) execute(ctx context.Context, command string, out io.Writer) error {
	args := words(s.replace.Replace(command))
	switch args[0] {
	case "mkdir":
		return os.Mkdir(filepath.Join(s.dir, args[1]), 0o750)
	case "cd":
		s.dir = filepath.Join(s.dir, args[1])
		return nil
	case "export":
		s.env = append(s.env, args[1:]...)
		return nil
	case "curl":
		return curl(ctx, args[1:], out)
	}
	c := s.command(ctx, args)
	var errs bytes.Buffer
	c.Stdout, c.Stderr = out, &errs
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, errs.String())
	}
	return nil
}

func (s *shell) command(ctx context.Context, args []string) *exec.Cmd {
	path := args[0]
	if installed := filepath.Join(s.variable("GOBIN"), path); exists(installed) {
		path = installed
	}
	c := exec.CommandContext(ctx, path, args[1:]...) //nolint:gosec // the commands are those of the pages
	c.Dir, c.Env = s.dir, append(os.Environ(), s.env...)
	return c
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *shell) variable(name string) string {
	for _, v := range s.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// curl sends a request as the program of that name does. It knows the options -i, -X, -H and -d.
func curl(ctx context.Context, args []string, out io.Writer) error {
	var address, method, body string
	shows := false
	header := http.Header{}
	for n := 0; n < len(args); n++ {
		switch args[n] {
		case "-i":
			shows = true
			continue
		case "-X", "-H", "-d":
			n++
		default:
			address = args[n]
			continue
		}
		switch value := args[n]; args[n-1] {
		case "-X":
			method = value
		case "-H":
			name, of, _ := strings.Cut(value, ": ")
			header.Set(name, of)
		case "-d":
			body = value
		}
	}
	if method == "" && body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	return send(request, shows, out)
}

// send writes the head of a reply as it comes, if shows is set, and its body.
func send(request *http.Request, shows bool, out io.Writer) error {
	conn, err := new(net.Dialer).DialContext(request.Context(), "tcp", request.URL.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	var raw bytes.Buffer
	reply, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &raw)), request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if shows {
		head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
		fmt.Fprintf(out, "%s\n\n", strings.ReplaceAll(head, "\r\n", "\n"))
	}
	_, err = io.Copy(out, reply.Body)
	return err
}

func TestCommandsAreSplit(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"mkdir a", "cd a", "go run ."}, commands("mkdir a && cd a # a folder\ngo run .\n"))
	assert.Equal(t, []string{"curl", "-d", `{"a": 1}`, "x"}, words(`curl -d '{"a": 1}' x`))
}

func TestACommandThatFailsIsNoticed(t *testing.T) {
	t.Parallel()
	s := &shell{dir: t.TempDir(), replace: strings.NewReplacer()}
	_, err := s.run(t.Context(), "go run ./missing\n")
	require.ErrorContains(t, err, "missing")
}
