package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience bounds a failing test and is no claim about speed.
const patience = 30 * time.Second

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// client talks to an API.
type client struct {
	t    *testing.T
	base string
}

// serve gives the API of a service on a database of its own, whose history follows the orders.
func serve(t *testing.T) client {
	t.Helper()
	s, err := service.Open(t.Context(), testdb.Client(t), service.Config{})
	require.NoError(t, err)
	consumer, err := s.NewConsumer(subscriber.Config{}, nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(context.WithoutCancel(t.Context())) }()
	<-consumer.Running()
	t.Cleanup(func() {
		require.NoError(t, consumer.Close())
		require.NoError(t, <-ended)
	})
	return serveWith(t, s.Orders, s.History)
}

func serveWith(t *testing.T, orders api.Orders, view api.History) client {
	t.Helper()
	placed := 0
	server := httptest.NewServer(api.New(api.Config{
		Orders: orders, History: view,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		NewID:  func() string { return "made up" },
		Now: func() time.Time { // later each time
			placed++
			return noon.Add(time.Duration(placed) * time.Minute)
		},
	}))
	t.Cleanup(server.Close)
	return client{t, server.URL}
}

// answer is what came back.
type answer struct {
	*http.Response
	body []byte
}

func (c client) send(method, path, body string) answer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewBufferString(body))
	require.NoError(c.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	return answer{response, data}
}

func (c client) get(path string) answer { c.t.Helper(); return c.send(http.MethodGet, path, "") }
func (c client) post(path, body string) answer {
	c.t.Helper()
	return c.send(http.MethodPost, path, body)
}

// decode reads a good answer.
func decode[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	require.Less(t, a.StatusCode, 300, "%s", a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NoError(t, json.Unmarshal(a.body, &v), "%s", a.body)
	return v
}

// problem reads a bad answer and gives its reason.
func problem(t *testing.T, a answer, status int) (detail string) {
	t.Helper()
	require.Equal(t, status, a.StatusCode, "%s", a.body)
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	var p struct {
		Title  string
		Status int
		Detail string
	}
	require.NoError(t, json.Unmarshal(a.body, &p), "%s", a.body)
	require.Equal(t, status, p.Status)
	require.Equal(t, http.StatusText(status), p.Title)
	return p.Detail
}

// stub answers every command and query with an error.
type stub struct{ err error }

func (s stub) Execute(context.Context, string, order.Decision, ...repository.Option) (a repository.Aggregate[order.Order], err error) {
	return a, s.err
}

func (s stub) FindOrder(context.Context, string) (o history.Order, err error) { return o, s.err }

func (s stub) FindOrderHistory(context.Context, string, history.Filter) (p history.Page, err error) {
	return p, s.err
}
