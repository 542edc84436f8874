package apptest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// patience is the longest time that a test waits for an expected event.
const patience = 5 * time.Minute

// App describes an application.
type App struct {
	Run      func(ctx context.Context, args []string, out, log io.Writer) error
	Serving  string // Serving is the text that it prints before the address of its page.
	Snapshot string // its snapshot table
	Group    string // one of its consumer groups
}

// ReachTables starts an application that serves its database, and runs the millrace command that
// the application prints. It sets the environment, so the test cannot run in parallel.
func ReachTables(t *testing.T, app App) {
	t.Helper()
	const proxy = "app.example"
	t.Setenv(dynamo.EndpointEnv, "")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, log Terminal
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, []string{"serve", "-listen", "127.0.0.1:0", "-database", "127.0.0.1:0", "-host", proxy}, &out, &log)
	}()
	var endpoint, page string
	// The command reads it from the journal.
	tables := journal.Tables{Snapshot: app.Snapshot}
	require.Eventually(t, func() bool {
		_, command, printed := strings.Cut(out.String(), "\n  millrace groups ")
		if !printed {
			return false
		}
		_, err := fmt.Sscanf(command, "--endpoint %s --journal-table %s --checkpoint-table %s\n", &endpoint, &tables.Journal, &tables.Checkpoint)
		return assert.NoError(t, err, command)
	}, patience, 10*time.Millisecond, "the command must be printed: %s", &log)
	_, after, _ := strings.Cut(out.String(), app.Serving)
	_, err := fmt.Sscan(after, &page)
	require.NoError(t, err)

	t.Setenv(dynamo.EndpointEnv, endpoint)
	client, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	opened, err := journal.Open(t.Context(), client, journal.Config{Tables: tables})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		all, err := groups.New(opened).List(t.Context())
		require.NoError(t, err)
		for _, group := range all {
			if group.Name == app.Group {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond, "there must be a group %q", app.Group)
	for host, status := range map[string]int{"localhost": http.StatusOK, proxy: http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		assert.Equal(t, status, statusOf(t, page, host), host)
	}

	interrupt()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the server must stop when it is interrupted")
	}
	_, err = groups.New(opened).List(t.Context())
	assert.Error(t, err, "the database must end with the process")
}

// statusOf returns the status of a page for a Host header.
func statusOf(t *testing.T, page, host string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	require.NoError(t, err)
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
