package howto_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/lambda"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func TestAFunctionHandlesCommandsAndSweeps(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 4},
	})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	_, err = orders.Execute(t.Context(), "1", shop.Place("ada", 1))
	require.NoError(t, err)

	function, err := lambda.Open(t.Context(), db.Client(), watermill.NopLogger{})
	require.NoError(t, err)
	for event, want := range map[string]string{
		`{"Records":[{"eventSource":"aws:sqs","messageId":"a","body":"{\"Order\":\"1\"}","messageAttributes":{"name":{"stringValue":"lambda.ShipOrder"}}}]}`: `{"batchItemFailures":[]}`,
		`{"detail-type":"Scheduled Event"}`: `{"left":0}`,
	} {
		reply, err := function.Invoke(t.Context(), []byte(event))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(reply))
	}
	order, err := orders.Load(t.Context(), "1")
	require.NoError(t, err)
	assert.True(t, order.State.Shipped)
}

func TestAQueryWithATokenHandlesWhatItNames(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	var placed atomic.Int64
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "view", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(context.Context, *shop.Placed) error {
			placed.Add(1)
			return nil
		})))
	query := lambda.Consistent(app, "view")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, placed.Load())
	}))
	ask := func(token string) string {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set(consistency.Header, token)
		query.ServeHTTP(w, r)
		return w.Body.String()
	}
	order, err := orders.Execute(t.Context(), "1", shop.Place("ada", 1))
	require.NoError(t, err)
	_, err = orders.Execute(t.Context(), "2", shop.Place("bob", 1))
	require.NoError(t, err)
	assert.Equal(t, "0", ask(""), "it does not wait")
	assert.Equal(t, "1", ask(order.Token().String()))
	assert.Equal(t, "1", ask(order.Token().String()))
}
