package console_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// onLayouts runs a test on both layouts.
func onLayouts(t *testing.T, test func(t *testing.T, j *journal.Journal)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		test(t, newJournal(t, journal.Config{Layout: layout}))
	})
}

func newJournal(t *testing.T, config journal.Config) *journal.Journal {
	t.Helper()
	client := testdb.Client(t)
	config.Shards, config.Layout = 4, cmp.Or(config.Layout, journal.Classic)
	return testjournal.New(t, client, config)
}

// cart is the aggregate of these tests.
type (
	cart struct {
		Owner string         `json:"owner"`
		Lines []line         `json:"lines"`
		Notes map[string]any `json:"notes"`
	}
	line struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	opened struct {
		Owner string `json:"owner"`
	}
	added struct {
		Line line `json:"line"`
	}
	noted struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
)

func (opened) EventType() string { return "cart.opened" }
func (added) EventType() string  { return "cart.added" }
func (noted) EventType() string  { return "cart.noted" }

func (e opened) Apply(c *cart) { c.Owner, c.Notes = e.Owner, map[string]any{} }
func (e added) Apply(c *cart)  { c.Lines = append(c.Lines, e.Line) }
func (e noted) Apply(c *cart)  { c.Notes[e.Key] = e.Value }

var carts = aggregate.Define[cart]("cart", opened{}, added{}, noted{})

func repositoryOf(t *testing.T, j *journal.Journal, config repository.Config) *repository.Repository[cart] {
	t.Helper()
	return testjournal.Repository(t, j, carts, config)
}

// save appends events to a cart, each in its own commit.
func save(ctx context.Context, t *testing.T, r *repository.Repository[cart], id string, events ...aggregate.Event[cart]) {
	t.Helper()
	for _, e := range events {
		_, err := r.Execute(ctx, id, func(cart) (aggregate.Events[cart], error) { return aggregate.Events[cart]{e}, nil })
		require.NoError(t, err)
	}
}

func newConsole(t *testing.T, config console.Config) *console.Console {
	t.Helper()
	c, err := console.New(config)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// reply is a document under api.
type reply struct {
	Data      json.RawMessage
	ReadUnits float64 `json:"read_units"`
	Requests  int
	Error     string
}

// get reads a document.
func get(t *testing.T, c http.Handler, path string) reply {
	t.Helper()
	r, status := ask(t, c, path)
	require.Equal(t, http.StatusOK, status, "%s: %s", path, r.Error)
	return r
}

// ask reads a document, or an error.
func ask(t *testing.T, c http.Handler, path string) (r reply, status int) {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/"+path, http.NoBody))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &r), "%s: %s", path, w.Body)
	return r, w.Code
}

// read reads a document into a value.
func read[T any](t *testing.T, c http.Handler, path string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(get(t, c, path).Data, &value))
	return value
}
