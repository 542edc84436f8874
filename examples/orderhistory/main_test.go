package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
)

// patience bounds a failing test and is no claim about speed.
const patience = 30 * time.Second

// terminal is a buffer for several goroutines.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *terminal) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *terminal) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestTheServerSaysWhereItIsServesAndStops(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, log terminal
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, client, "127.0.0.1:0", true, &out, &log) }()

	var base string
	require.Eventually(t, func() bool {
		_, err := fmt.Sscanf(out.String(), "Serving orders on %s", &base)
		return err == nil
	}, patience, 10*time.Millisecond, "the server must say where it is: %s", &log)
	response, err := http.Post(base+"/orders", "application/json", strings.NewReader(
		`{"orderId": "first", "consumerId": "ada", "restaurant": "Ajanta", "lines": [{"name": "Naan", "quantity": 1, "priceCents": 300}]}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Eventually(t, func() bool {
		response, err := http.Get(base + "/consumers/ada/orders?keyword=naan")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(body), `"orderId":"first"`)
	}, patience, 10*time.Millisecond, "the history must show the order")

	interrupt()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the server must stop when it is interrupted")
	}
	_, err = http.Get(base + "/orders/first") //nolint:bodyclose // there is none
	require.Error(t, err, "the server must not listen any more")
	assert.Empty(t, log.String())
}

func TestAnAddressThatCannotBeServedEndsTheServer(t *testing.T) {
	t.Parallel()
	err := serve(t.Context(), testdb.Client(t), "127.0.0.1:-1", false, io.Discard, io.Discard)
	assert.Error(t, err)
}

func TestAnUnknownCommandIsRefused(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"sing"}, io.Discard, io.Discard)
	assert.EqualError(t, err, `there is no command "sing", only serve and story`)
	assert.Error(t, run(t.Context(), []string{"story", "-orders", "many"}, io.Discard, io.Discard))
	assert.Error(t, run(t.Context(), []string{"serve", "dinner"}, io.Discard, io.Discard))
}
