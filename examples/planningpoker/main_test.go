package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/planningpoker/client"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

func TestTheServerSaysWhereItIsServesAndStopsWithItsStreams(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			servesAndStops(t, layout)
		})
	}
}

func servesAndStops(t *testing.T, layout journal.Layout) {
	t.Helper()
	db := testdb.Client(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, log apptest.Terminal
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &dynamo.Database{Client: db}, service.Config{Address: "127.0.0.1:0", Layout: layout}, &out, &log)
	}()

	var base string
	require.Eventually(t, func() bool {
		_, err := fmt.Sscanf(out.String(), "Serving planning poker on %s", &base)
		return err == nil
	}, patience, 10*time.Millisecond, "the server must say where it is: %s", &log)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ada := client.New(func() string { return base }, transport)
	require.NoError(t, ada.Visit(t.Context()))
	id, err := ada.Open(t.Context(), client.Body{"name": "Sprint 12"})
	require.NoError(t, err)
	_, err = ada.Do(t.Context(), id, "join?wait=true", client.Body{"name": "Ada"})
	require.NoError(t, err)

	err = ada.Watch(t.Context(), id, func(r web.Room) bool {
		if r.Joined {
			interrupt()
		}
		return false
	})
	require.NoError(t, err, "the server must end the stream")
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the server must stop when it is interrupted")
	}
	require.Error(t, ada.Visit(t.Context()), "the server must not listen any more")
	assert.Empty(t, log.String())
}

// The test executes the commands that the terminal shows, except that it does not call curl.
func TestWhatTheServerSaysToTryWorks(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	var out apptest.Terminal
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &dynamo.Database{Client: testdb.Client(t)}, service.Config{Address: "127.0.0.1:0"}, &out, io.Discard)
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "/events\n") }, patience, 10*time.Millisecond)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	me := &http.Client{Transport: transport}
	var cookie *http.Cookie
	tried := 0

	for line := range strings.Lines(out.String()) {
		_, command, found := strings.Cut(strings.TrimSpace(line), "http://")
		if !found || !strings.Contains(line, "curl") || strings.HasSuffix(command, "/events") {
			continue
		}
		address := "http://" + strings.TrimSuffix(command, "'")
		method, body := http.MethodGet, ""
		if before, after, found := strings.Cut(address, "' --json '"); found {
			method, address, body = http.MethodPost, before, after
		}
		request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		if cookie != nil {
			request.AddCookie(cookie)
		}
		response, err := me.Do(request)
		require.NoError(t, err)
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Less(t, response.StatusCode, 300, "%s: %s", command, content)
		for _, set := range response.Cookies() {
			cookie = set
		}
		tried++
	}
	assert.Equal(t, 5, tried, "all but the stream must be recognised in %s", &out)

	interrupt()
	require.NoError(t, <-ended)
}

func TestAnAddressThatCannotBeServedEndsTheServer(t *testing.T) {
	t.Parallel()
	err := serve(t.Context(), &dynamo.Database{Client: testdb.Client(t)}, service.Config{Address: "127.0.0.1:-1"}, io.Discard, io.Discard)
	assert.Error(t, err)
}

func TestAnUnknownCommandIsRefused(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"sing"}, io.Discard, io.Discard)
	require.EqualError(t, err, `there is no command "sing", only serve and load`)
	require.Error(t, run(t.Context(), []string{"load", "-rooms", "many"}, io.Discard, io.Discard))
	assert.Error(t, run(t.Context(), []string{"serve", "dinner"}, io.Discard, io.Discard))
}

func TestHelpNamesEverythingThatConfiguresAServer(t *testing.T) {
	t.Parallel()
	var help apptest.Terminal
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, &help), flag.ErrHelp)
	for _, name := range []string{"serve ", "-listen", "-host", "-database", dynamo.EndpointEnv} {
		assert.Contains(t, help.String(), name)
	}
}
