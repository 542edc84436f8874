package main

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

// The database of the process is opened as the printed command opens it. It sets the environment,
// so the test cannot run in parallel.
func TestThePrintedCommandReachesTheTables(t *testing.T) {
	t.Setenv(dynamo.EndpointEnv, "")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, log terminal
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-listen", "127.0.0.1:0", "-database", "127.0.0.1:0", "-host", "orders.example"}, &out, &log)
	}()
	var endpoint, base string
	tables := journal.Tables{Snapshot: "ftgo-snapshot"} // the command takes it from the journal
	require.Eventually(t, func() bool {
		_, command, printed := strings.Cut(out.String(), "\n  millrace groups ")
		if !printed {
			return false
		}
		_, err := fmt.Sscanf(command, "--endpoint %s --journal-table %s --checkpoint-table %s\n", &endpoint, &tables.Journal, &tables.Checkpoint)
		return assert.NoError(t, err, command)
	}, patience, 10*time.Millisecond, "the command must be printed: %s", &log)
	_, after, _ := strings.Cut(out.String(), "Serving orders on ")
	_, err := fmt.Sscan(after, &base)
	require.NoError(t, err)

	t.Setenv(dynamo.EndpointEnv, endpoint)
	client, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	opened, err := journal.Open(t.Context(), client, journal.Config{Tables: tables})
	require.NoError(t, err)
	all, err := groups.New(opened).List(t.Context())
	require.NoError(t, err)
	var names []string
	for _, group := range all {
		names = append(names, group.Name)
	}
	assert.Contains(t, names, "order-history")

	for host, status := range map[string]int{"localhost": 200, "orders.example": 200, "evil.example": 421} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		require.NoError(t, err)
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, status, response.StatusCode, host)
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
