package howto_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
	"github.com/millrace-dev/millrace/test/docs/howto/wait"
)

// world is an App with a projection, totals, and a read model in generations, history.
func world(t *testing.T) (*millrace.App, *repository.Repository[shop.Order], *readmodel.Model) {
	t.Helper()
	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	reaction := projection.On(func(context.Context, shop.Placed, *journal.Record) ([]projection.Write, error) { return nil, nil })
	_, err = app.Project(millrace.Group{Name: "totals", Topics: []string{"order"}}, reaction)
	require.NoError(t, err)
	history, err := app.ReadModel(t.Context(), readmodel.Config{Name: "history", Topics: []string{"order"}},
		func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
			return []projection.Reaction{reaction}, nil
		})
	require.NoError(t, err)
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })
	return app, orders, history
}

func TestAQueryShowsWhatWasWritten(t *testing.T) {
	t.Parallel()
	app, orders, history := world(t)
	require.Eventually(t, func() bool { // a busy machine may need more than two seconds
		shown, err := wait.PlaceAndWait(t.Context(), orders, app.Groups(), "1")
		return err == nil && shown
	}, time.Minute, time.Millisecond)

	order, err := orders.Load(t.Context(), "1")
	require.NoError(t, err)
	serving, err := wait.Serving(t.Context(), history, app.Groups(), order.Token())
	require.NoError(t, err)
	assert.EqualValues(t, 1, serving.Number)
}

func TestAReadModelThatIsLateIsNoError(t *testing.T) {
	t.Parallel()
	app, orders, _ := world(t)
	require.Eventually(t, func() bool { // once the group is there
		return app.Groups().Of("totals", "order").Pause(t.Context()) == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, app.Groups().Of("totals", "order").WaitIdle(t.Context()))

	shown, err := wait.PlaceAndWait(t.Context(), orders, app.Groups(), "1")

	require.NoError(t, err)
	assert.False(t, shown)
}

func TestAClientSendsTheTokenOfItsCommand(t *testing.T) {
	t.Parallel()
	app, orders, _ := world(t)
	queries := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := httptest.NewServer(wait.Routes(app, orders, queries))
	t.Cleanup(server.Close)
	request := func(method, path, token string) (status int, sent string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set(consistency.Header, token)
		}
		reply, err := server.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		return reply.StatusCode, reply.Header.Get(consistency.Header)
	}

	status, token := request(http.MethodPut, "/orders/7", "")

	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, "order:7@1", token)
	require.Eventually(t, func() bool {
		status, _ := request(http.MethodGet, "/totals/ada", token)
		return status == http.StatusOK
	}, time.Minute, time.Millisecond)
	status, _ = request(http.MethodGet, "/totals/ada", "order:7@99")
	assert.Equal(t, http.StatusServiceUnavailable, status)
}
