//go:build unix

package tutorial

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// place is what a page assumes: a program with a database.
type place struct {
	database string // URL
	prefix   string // of tables, which the reader sets
}

// world holds the programs that the pages share.
type world struct {
	t        *testing.T // of all pages
	programs string     // folder

	mu     sync.Mutex
	places map[string]func() place
}

// newWorld compiles the programs.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, programs: t.TempDir(), places: map[string]func() place{}}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", w.programs+"/", "./cmd/millrace", "./examples/console")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return w
}

// of returns the place of a page. Most pages share a shop: they change different groups.
func (w *world) of(t *testing.T, page, text string) place {
	t.Helper()
	shop := []string{"console", "-listen", "127.0.0.1:0", "-database", "127.0.0.1:0"}
	switch {
	case page == "share-tables.md":
		return ofAnotherProgram(t)
	case strings.Contains(text, " -quiet`"),
		page == "send-emails-once.md": // it lists mails that handle-a-poison-event retries
		return w.shared("quiet", append(shop, "-quiet")...)
	}
	return w.shared("shop", shop...)
}

// shared returns the place of a program, which the first page starts.
func (w *world) shared(name string, command ...string) place {
	w.mu.Lock()
	started := w.places[name]
	if started == nil {
		started = sync.OnceValue(func() place { return w.start(command) })
		w.places[name] = started
	}
	w.mu.Unlock()
	return started()
}

var endpoint = regexp.MustCompile(`--endpoint (http://\S+)`)

// start starts a program, and waits until it serves.
func (w *world) start(command []string) (at place) {
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	cmd := exec.CommandContext(ctx, filepath.Join(w.programs, command[0]), command[1:]...) //nolint:gosec // of the examples
	cmd.Env = withoutAWS()
	out, in := io.Pipe()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = in, &log
	if err := cmd.Start(); err != nil {
		w.t.Error(err)
		stop()
		return at
	}
	ended := make(chan struct{})
	w.t.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		_ = in.CloseWithError(cmd.Wait())
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := endpoint.FindStringSubmatch(lines.Text()); found != nil {
			at.database, at.prefix = found[1], "shop-"
			break
		}
	}
	if at.database == "" {
		<-ended
		w.t.Errorf("%s does not serve: %v: %s", command[0], lines.Err(), &log)
		return at
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return at
}
