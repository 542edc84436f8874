package main

import (
	"bufio"
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// patience limits the time that a test waits before it fails. It says nothing about speed.
const patience = 2 * time.Minute

// asCommand is the environment variable that makes the test's program the command.
const asCommand = "MILLRACE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// millrace returns a process of the command, on a database that is served over a socket.
func millrace(t *testing.T, db *dynamotest.DB, args ...string) *exec.Cmd {
	t.Helper()
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "MILLRACE_DYNAMODB_ENDPOINT="+server.URL)
	return cmd
}

func TestTheProcessExitsWithTheCode(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	for line, want := range map[string]int{"describe": 1, "nonsense": 2, "--help": 0, "--version": 0} {
		cmd := millrace(t, db, line)
		err := cmd.Run()
		if want == 0 {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
		assert.Equal(t, want, cmd.ProcessState.ExitCode(), line)
	}
}

func TestAnInterruptEndsATailThatIsFollowed(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 2}))
	j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
	require.NoError(t, err)
	_, err = j.Internal().Append(t.Context(), storage.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: "1"}, Events: []storage.Event{{ID: "a", Type: "opened"}},
	})
	require.NoError(t, err)
	cmd := millrace(t, db, "tail", "account", "--follow", "--json")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()

	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(line, `{"kind":"event",`), line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), "the process must end by itself with 0: %s", &log)
	assert.Empty(t, log.String())
}
