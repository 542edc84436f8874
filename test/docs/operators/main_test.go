package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/await"
)

func TestTheProgramServesAConsole(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener) }()

	var page string
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + listener.Addr().String() + "/console/aggregate?type=account&id=alice")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		page = string(body)
		return err == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	assert.Contains(t, page, "account.deposited.v1")
	assert.Contains(t, page, "State after event 1", "the console of an App shows states")

	stop()
	require.NoError(t, await.Receive(t, ended, "the program must end with the interrupt"))
}
