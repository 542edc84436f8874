//go:build unix

package tutorial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const howTos = root + "/docs/howto"

func TestTheHowTosWorkAsTheySay(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles two programs and starts them")
	}
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	w := newWorld(t)
	paths, err := filepath.Glob(howTos + "/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			steps, err := parse(string(text))
			require.NoError(t, err)
			if !slices.ContainsFunc(steps, step.runs) {
				return
			}
			r := newReader(t, w.programs, w.of(t, filepath.Base(path), string(text)))
			for _, next := range steps {
				if next.runs() {
					r.follow(t, next)
				}
			}
		})
	}
}

func (s step) runs() bool { return slices.Contains([]string{"run", "poll", "start", "on AWS"}, s.kind) }

// reader types the commands of a page.
type reader struct {
	shell    *shell // for commands that are left running
	place    place
	settings []string // the lines so far that set a variable
	env      []string
}

// newReader returns a reader whose environment names no credentials and no region of AWS, so no
// command can reach an account.
func newReader(t *testing.T, programs string, at place) *reader {
	t.Helper()
	r := &reader{place: at, shell: &shell{dir: t.TempDir(), running: map[string]*process{}, replace: strings.NewReplacer()}}
	t.Cleanup(r.shell.close)
	r.env = withoutAWS()
	r.shell.env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "GOBIN=" + programs, "HOME=" + r.shell.dir, "AWS_EC2_METADATA_DISABLED=true"}
	if at.prefix != "" {
		r.shell.env = append(r.shell.env, "MILLRACE_DYNAMODB_ENDPOINT="+at.database, "MILLRACE_PREFIX="+at.prefix)
	}
	r.env = append(r.env, r.shell.env...)
	return r
}

func withoutAWS() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "MILLRACE_") {
			env = append(env, v)
		}
	}
	return env
}

// atTerminal confirms what millrace asks at a terminal. It refuses aws, which belongs into a block
// that no test runs.
const atTerminal = `set -euo pipefail
millrace() {
	case "$1 ${2:-}" in
	"group reset"|"group remove"|"group reset-aggregate"|"model drop") command millrace "$@" --yes ;;
	*) command millrace "$@" ;;
	esac
}
aws() { echo "mark this block: on AWS"; return 1; }
`

var setting = regexp.MustCompile(`^(export )?[A-Z_]+=`)

// bash runs a block after the settings of those before it.
func (r *reader) bash(ctx context.Context, block string) (string, error) {
	script := atTerminal + strings.Join(r.settings, "\n") + "\n" + block
	cmd := exec.CommandContext(ctx, "bash", "-c", script) //nolint:gosec // the commands are those of the pages
	cmd.Dir, cmd.Env = r.shell.dir, r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *reader) follow(t *testing.T, next step) {
	t.Helper()
	next.text = strings.ReplaceAll(next.text, "http://127.0.0.1:8000", r.place.database)
	next.output = strings.ReplaceAll(next.output, "http://127.0.0.1:8000", r.place.database)
	at := fmt.Sprintf("line %d", next.line)
	switch next.kind {
	case "on AWS":
		r.onAWS(t, next)
		return
	case "poll":
		r.shell.until(t, at, next.output, func() (string, error) { return r.bash(t.Context(), next.text) }, next.shows)
	case "start":
		p, err := r.shell.start(t.Context(), next.text)
		require.NoError(t, err, at)
		r.shell.until(t, at, next.output, func() (string, error) { return p.printed(), nil }, next.shows)
		_, err = r.shell.interrupt(strings.TrimSpace(next.text))
		require.NoError(t, err, at)
	default:
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
		defer stop()
		got, err := r.bash(ctx, next.text)
		require.NoError(t, err, "%s: %s", at, got)
		if !next.shows(got) {
			require.Equal(t, next.output, got, at)
		}
	}
	for line := range strings.Lines(next.text) {
		if line = strings.TrimSpace(line); setting.MatchString(line) {
			r.settings = append(r.settings, line)
		}
	}
}

// differs are the parts of an output that are others in each run: times, ids, processes, numbers,
// and the width of columns.
var differs = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[\w.-]+/\d+\b|\d[\d,.]*\+?|  +`)

// shows reports whether an output is as the page says. Of a part, all lines must be in the output,
// in this order.
func (s step) shows(got string) bool {
	if s.output == "" {
		return true // the page does not show it
	}
	want, all := same(s.output), same(got)
	if !s.part {
		return slices.Equal(want, all)
	}
	for _, line := range all {
		if len(want) > 0 && want[0] == line {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func same(output string) []string {
	lines := normal(output)
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(differs.ReplaceAllString(line, " ")), " ")
	}
	return lines
}

func TestAnOutputOfAHowToIsCompared(t *testing.T) {
	t.Parallel()
	got := "AGGREGATE  NEXT  REASON\na-1        3     no carrier\na-2        14    no carrier\n"
	assert.True(t, step{output: "AGGREGATE NEXT REASON\na-7 99 no carrier\na-8 1 no carrier\n"}.shows(got))
	assert.True(t, step{output: "a-2  3  no carrier\n", part: true}.shows(got))
	assert.False(t, step{output: "a-2  3  no carrier\n"}.shows(got))
	assert.False(t, step{output: "a-2  3  no mail\n", part: true}.shows(got))
}
