package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

// roomID is the room that a test opens.
const roomID = "01J00000000000000000000RXM"

// serve starts a server that stops with the test.
func serve(t *testing.T, client *dynamodb.Client, config service.Config) *service.Server {
	t.Helper()
	var log bytes.Buffer
	config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	// Pages are open until the cleanup.
	s, err := service.Start(context.WithoutCancel(t.Context()), client, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(), "%s", &log) })
	return s
}

// browser is the browser of a visitor, who is known after the first GET.
type browser struct {
	t      *testing.T
	client *http.Client
	base   string
}

func visit(t *testing.T, base string) *browser {
	t.Helper()
	b := stranger(t, base)
	b.do(http.MethodGet, "/", "")
	return b
}

// stranger returns a browser without a cookie.
func stranger(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: t, client: &http.Client{Transport: transport, Jar: jar}, base: base}
}

// reply is a reply of the server.
type reply struct {
	status int
	header http.Header
	body   string
}

func (b *browser) do(method, path, body string) reply {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	require.NoError(b.t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := b.client.Do(request)
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return reply{response.StatusCode, response.Header, string(content)}
}

// post expects success, and waits until queries show it.
func (b *browser) post(path, body string) reply {
	b.t.Helper()
	got := b.do(http.MethodPost, path+"?wait=true", body)
	require.Contains(b.t, []int{http.StatusOK, http.StatusCreated, http.StatusAccepted}, got.status, "POST %s: %s", path, got.body)
	if got.status == http.StatusAccepted { // the view was late
		var done struct{ Version uint64 }
		require.NoError(b.t, json.Unmarshal([]byte(got.body), &done))
		require.Eventually(b.t, func() bool {
			var r web.Room
			shown := b.do(http.MethodGet, "/rooms/"+roomID, "")
			return shown.status == http.StatusOK && json.Unmarshal([]byte(shown.body), &r) == nil && r.Version >= done.Version
		}, patience, 10*time.Millisecond, "queries must show version %d", done.Version)
	}
	return got
}

func (b *browser) open(body string) {
	b.t.Helper()
	b.post("/rooms", body)
}

func (b *browser) join(name string) {
	b.t.Helper()
	b.post("/rooms/"+roomID+"/join", `{"name": "`+name+`"}`)
}

func (b *browser) room() (r web.Room) {
	b.t.Helper()
	got := b.do(http.MethodGet, "/rooms/"+roomID, "")
	require.Equal(b.t, http.StatusOK, got.status, got.body)
	require.NoError(b.t, json.Unmarshal([]byte(got.body), &r))
	return r
}
