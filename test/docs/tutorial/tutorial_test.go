//go:build unix

package tutorial

import (
	"fmt"
	"go/format"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	// These packages are imported by the programs of the tutorial. If one of them changes, the
	// cached result of this test is not valid any more.
	_ "github.com/millrace-dev/millrace"
	_ "github.com/millrace-dev/millrace/aggregate/aggregatetest"
	_ "github.com/millrace-dev/millrace/command"
	_ "github.com/millrace-dev/millrace/dynamotest"
	_ "github.com/millrace-dev/millrace/metrics"
	_ "github.com/millrace-dev/millrace/process/processtest"
)

const (
	root  = "../../.."
	pages = root + "/docs/tutorial"
)

// The test replaces two things in the commands of the pages: the clone beside the module by this
// repository, and ports by free ones.
func TestTheTutorialWorksAsItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles and runs a service eight times")
	}
	t.Parallel()
	s := newShell(t)
	for _, page := range append([]string{"README.md"}, chapters(t)...) {
		text, err := os.ReadFile(filepath.Join(pages, page))
		require.NoError(t, err)
		steps, err := parse(string(text))
		require.NoError(t, err, page)
		require.NotEmpty(t, steps, page)
		if !t.Run(page, func(t *testing.T) { //nolint:paralleltest // each page needs those before it
			for _, next := range steps {
				s.follow(t, next)
			}
		}) {
			return
		}
	}
	require.Empty(t, s.running, "the pages stop what they start")
}

// chapters returns the pages in their order.
func chapters(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob(pages + "/[0-9]-*.md")
	require.NoError(t, err)
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	require.Len(t, names, 8)
	return names
}

func newShell(t *testing.T) *shell {
	t.Helper()
	clone, err := filepath.Abs(root)
	require.NoError(t, err)
	s := &shell{dir: t.TempDir(), running: map[string]*process{}}
	// The flags and GOGC save a third of the time. The last page vets all files.
	flags := os.Getenv("GOFLAGS") + " -vet=off -ldflags=-w"
	s.env = []string{"GOBIN=" + t.TempDir(), "GOWORK=", "GOTOOLCHAIN=local", "GOFLAGS=" + flags, "GOGC=400"}
	replace := []string{"../millrace", clone}
	for _, port := range []string{"8000", "8080", "8081", "9090", "9091"} {
		replace = append(replace, "127.0.0.1:"+port, freeAddress(t))
	}
	s.replace = strings.NewReplacer(replace...)
	t.Cleanup(s.close)
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func (s *shell) follow(t *testing.T, next step) {
	t.Helper()
	want := s.replace.Replace(next.output)
	at := fmt.Sprintf("line %d", next.line)
	switch next.kind {
	case "file":
		s.write(t, next)
	case "run":
		got, err := s.run(t.Context(), next.text)
		require.NoError(t, err, at)
		if !matches(want, got) {
			require.Equal(t, want, got, at)
		}
		s.knowSums(t)
	case "poll":
		s.wait(t, at, want, func() (string, error) { return s.run(t.Context(), next.text) })
	case "start":
		p, err := s.start(t.Context(), next.text)
		require.NoError(t, err, at)
		s.wait(t, at, want, func() (string, error) { return p.printed(), nil })
	case "prints":
		p := s.running[next.argument]
		require.NotNil(t, p, "%s: %q does not run", at, next.argument)
		s.wait(t, at, "...\n"+s.replace.Replace(next.text)+"...\n", func() (string, error) { return p.printed(), nil })
	case "stop", "kill":
		got, err := s.interrupt(next.argument)
		require.NoError(t, err, at)
		if !matches("...\n"+want, got) {
			require.Equal(t, want, got, at)
		}
	}
}

// wait waits until an output is as the page shows it.
func (s *shell) wait(t *testing.T, at, want string, output func() (string, error)) {
	t.Helper()
	s.until(t, at, want, output, func(got string) bool { return matches(want, got) })
}

func (s *shell) until(t *testing.T, at, want string, output func() (string, error), shows func(got string) bool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	limit := time.After(2 * time.Minute)
	for {
		got, err := output()
		if err == nil && shows(got) {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			require.NoError(t, err, at)
			require.Equal(t, want, got, at)
		}
	}
}

// write pastes a block into its file.
func (s *shell) write(t *testing.T, file step) {
	t.Helper()
	text := file.text
	if strings.HasSuffix(file.argument, ".go") {
		formatted, err := format.Source([]byte(text))
		require.NoError(t, err, file.argument)
		assert.Equal(t, string(formatted), text, "format %s", file.argument)
	}
	path := filepath.Join(s.dir, file.argument)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(s.replace.Replace(text)), 0o600))
}

// knowSums copies the checksums of this repository into a new module. So Go does not ask its
// database of checksums, and the test runs offline.
func (s *shell) knowSums(t *testing.T) {
	t.Helper()
	path := filepath.Join(s.dir, "go.sum")
	if exists(path) {
		return
	}
	var sums []byte
	for _, module := range []string{".", "examples", "cmd/millrace", "test"} {
		of, err := os.ReadFile(filepath.Join(root, module, "go.sum"))
		require.NoError(t, err)
		sums = append(sums, of...)
	}
	require.NoError(t, os.WriteFile(path, sums, 0o600))
}

func TestTheTutorialNamesTheVersionsOfTheExamples(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile(root + "/examples/go.mod")
	require.NoError(t, err)
	text, err := os.ReadFile(pages + "/8-deployment.md")
	require.NoError(t, err)
	got := regexp.MustCompile(`go get (\S+)@(v\S+)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, got)
	for _, found := range got {
		assert.Contains(t, string(modules), found[1]+" "+found[2]+"\n")
	}
}

func TestTheTutorialSaysHowToUseAClone(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	start, err := os.ReadFile(pages + "/README.md")
	require.NoError(t, err)
	for _, flag := range []string{
		"-require=github.com/millrace-dev/millrace@v0.1.0", "-replace=github.com/millrace-dev/millrace=../millrace",
	} {
		assert.Contains(t, string(readme), flag)
		assert.Contains(t, string(start), flag)
	}
}
