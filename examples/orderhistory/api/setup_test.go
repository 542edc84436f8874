package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// client calls an API, and checks every reply against the description.
type client struct {
	t      *testing.T
	base   string
	routes routers.Router
	app    *service.Service // nil if the API is stubbed
}

// serve returns the API of a service on its own database, whose policies and history follow the
// events.
func serve(t *testing.T) client {
	t.Helper()
	s, err := service.Open(t.Context(), testdb.Client(t), millrace.Config{})
	require.NoError(t, err)
	require.NoError(t, s.Consume())
	feed, err := s.Feed()
	require.NoError(t, err)
	stop, err := s.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	c := serveWith(t, api.Config{
		Orders: s.Orders, Tickets: s.Tickets, Deliveries: s.Deliveries, History: s.History, Feed: feed, WaitShown: s.WaitShown,
		Ready: s.Answers,
	})
	c.app = s
	return c
}

// settle waits until the policies and the history have handled all events.
func (c client) settle() {
	c.t.Helper()
	require.NoError(c.t, c.app.Settle(c.t.Context()))
}

// shown returns what the history shows when it has handled all events.
func (c client) shown(id string) history.Order {
	c.t.Helper()
	c.settle()
	return decode[history.Order](c.t, c.get("/orders/"+id))
}

// stubbed returns an API whose parts return an error, or do nothing.
func stubbed(t *testing.T, err error) client {
	t.Helper()
	return serveWith(t, api.Config{
		Orders: stub[order.Order]{err}, Tickets: stub[ticket.Ticket]{err}, Deliveries: stub[delivery.Delivery]{err},
		History: stub[any]{err}, Feed: stub[any]{err}, Ready: func(context.Context) error { return err },
		WaitShown: func(context.Context, aggregate.ID, uint64) error { return err },
	})
}

func serveWith(t *testing.T, config api.Config) client {
	t.Helper()
	server := httptest.NewServer(handler(t, config))
	t.Cleanup(server.Close)
	return client{t: t, base: server.URL, routes: routes(t)}
}

func handler(t *testing.T, config api.Config) http.Handler {
	t.Helper()
	placed := 0
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.NewID = func() string { return "made.up" }
	config.Now = func() time.Time { // each call is later
		placed++
		return noon.Add(time.Duration(placed) * time.Minute)
	}
	config.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	made, err := api.New(config)
	require.NoError(t, err)
	return made
}

func routes(t *testing.T) routers.Router {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(api.Description)
	require.NoError(t, err)
	document.Servers = nil // the address does not matter
	router, err := legacy.NewRouter(document)
	require.NoError(t, err)
	return router
}

// answer is a reply.
type answer struct {
	*http.Response
	body []byte
}

func (c client) send(method, path, body string, header ...string) answer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewBufferString(body))
	require.NoError(c.t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	a := answer{response, data}
	c.check(a)
	return a
}

// check checks a reply against the description.
func (c client) check(a answer) {
	c.t.Helper()
	route, values, err := c.routes.FindRoute(a.Request)
	if err != nil { // the reply to a path that does not exist
		assert.Contains(c.t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, a.StatusCode)
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: a.Request, PathParams: values, Route: route},
		Status:                 a.StatusCode, Header: a.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !strings.Contains(a.Header.Get("Content-Type"), "json")},
	}
	assert.NoError(c.t, openapi3filter.ValidateResponse(c.t.Context(), input.SetBodyBytes(a.body)), "%s %s", a.Request.Method, a.Request.URL)
}

func (c client) get(path string) answer { c.t.Helper(); return c.send(http.MethodGet, path, "") }
func (c client) post(path, body string) answer {
	c.t.Helper()
	return c.send(http.MethodPost, path, body)
}

// decode reads a successful reply.
func decode[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	require.Less(t, a.StatusCode, 300, "%s", a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NoError(t, json.Unmarshal(a.body, &v), "%s", a.body)
	return v
}

// problem reads a problem document and returns its detail.
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

// stub returns an error for every command and query.
type stub[S any] struct{ err error }

func (s stub[S]) Execute(context.Context, string, aggregate.Decision[S], ...repository.Option) (a repository.Aggregate[S], err error) {
	return repository.Aggregate[S]{Version: 1}, s.err
}

func (s stub[S]) FindOrder(context.Context, string) (o history.Order, err error) { return o, s.err }

func (s stub[S]) FindOrderHistory(context.Context, string, history.Filter) (history.Page, error) {
	return history.Page{Orders: []history.Order{}}, s.err
}

func (s stub[S]) Serve(http.ResponseWriter, *http.Request, string, func(context.Context) (live.Update, error)) error {
	return s.err
}
