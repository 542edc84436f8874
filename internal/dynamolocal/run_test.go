package dynamolocal

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunReturnsTheExitCodeOfTheCommand(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"success":           {[]string{"exit", "0"}, 0},
		"failure":           {[]string{"exit", "7"}, 7},
		"ended by a signal": {[]string{"kill itself"}, 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{Endpoint: "http://127.0.0.1:1"}
			code, err := s.Run(child(t, c.args...), nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, code)
		})
	}
}

func TestRunTellsThatTheCommandIsUnknown(t *testing.T) {
	install(t)
	_, err := (&Server{}).Run(exec.Command("unknown-command"), nil)
	require.ErrorIs(t, err, exec.ErrNotFound)
}

func TestRunLeadsTheCommandToTheServer(t *testing.T) {
	cmd := child(t, "env", EndpointEnv)
	var out strings.Builder
	cmd.Stdout = &out
	_, err := (&Server{Endpoint: "http://127.0.0.1:41234"}).Run(cmd, nil)
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:41234\n", out.String())
}

func TestRunPassesSignalsOn(t *testing.T) {
	cmd := child(t, "await signal")
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	cmd.Stdout = in
	signals := make(chan os.Signal)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		if assert.Equal(t, "ready\n", line) {
			signals <- syscall.SIGTERM
		}
	}()

	code, err := (&Server{}).Run(cmd, signals)

	require.NoError(t, err)
	assert.Equal(t, 9, code, "the command must end in its own way after the signal")
}

func TestEnvironAddsDummyCredentialsForAStartedEmulatorAlone(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=/home/a", "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=", "MILLRACE_DYNAMODB_ENDPOINT="}

	started := (&Server{Endpoint: "http://x", process: &process{}}).Environ(env)
	assert.Equal(t, append(env[:4:4],
		"MILLRACE_DYNAMODB_ENDPOINT=http://x", "AWS_ACCESS_KEY_ID=millrace", "AWS_SECRET_ACCESS_KEY=secret"), started)

	given := (&Server{Endpoint: "http://x"}).Environ(env)
	assert.Equal(t, append(env[:4:4], "MILLRACE_DYNAMODB_ENDPOINT=http://x"), given)
}

// child returns a command that does what args say; see runChild.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	install(t, "child")
	return exec.Command(filepath.Join(os.Getenv("PATH"), "child"), args...)
}
