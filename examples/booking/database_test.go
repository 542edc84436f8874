package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
)

// It sets the environment, so it cannot run in parallel.
func TestAnotherProgramReachesTheTables(t *testing.T) {
	t.Setenv(dynamo.EndpointEnv, "")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out apptest.Terminal
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, false, "127.0.0.1:0", "127.0.0.1:0", &out) }()
	var endpoint, begin string
	require.Eventually(t, func() bool {
		_, command, printed := strings.Cut(out.String(), "\n  millrace groups ")
		if !printed {
			return false
		}
		_, err := fmt.Sscanf(command, "--endpoint %s --prefix %s\n", &endpoint, &begin)
		return assert.NoError(t, err, command)
	}, patience, 10*time.Millisecond, "the command must be printed")

	t.Setenv(dynamo.EndpointEnv, endpoint)
	client, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	other, err := millrace.Open(t.Context(), client, millrace.Config{Prefix: begin, ExistingTables: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		groups, err := other.Groups().List(t.Context())
		require.NoError(t, err)
		return len(groups) > 0
	}, patience, 10*time.Millisecond, "there must be groups")

	interrupt()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "it must stop when it is interrupted")
	}
}

func TestTheDatabaseOfAWSIsNotServed(t *testing.T) {
	t.Parallel()
	assert.ErrorContains(t, run(t.Context(), true, "127.0.0.1:0", "127.0.0.1:0", nil), "omit one of them")
}
