package sqlsuite_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

var splitAccounts = aggregate.Define[struct{}](topic, deposit{}).WithUpcasters(
	aggregate.Split("paid-twice", func(old PaidTwice) ([]deposit, error) {
		return []deposit{{Deposited{old.First}}, {Deposited{old.Second}}}, nil
	}),
)

var totals = millrace.Group{Name: "totals", Topics: []string{topic}}

func TestAnAppProjectsASplitEventToSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		app, err := millrace.Open(t.Context(), w.client, millrace.Config{
			ExistingTables: true,
			Subscriber:     func(_ string, c *subscriber.Config) { c.Definitions = []aggregate.AnyDefinition{splitAccounts} },
		})
		require.NoError(t, err)
		_, err = millrace.Repository(app, splitAccounts, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.ProjectSQL(totals, w.store, w.noting()))
		query := app.Consistent("totals", consistency.Config{Timeout: patience})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		stop, err := app.Start(t.Context())
		require.NoError(t, err)
		w.write("x", 0, PaidTwice{1, 2}, Deposited{4})
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set(consistency.Header, aggregate.Token{{ID: account("x"), Version: 2}}.String())
		reply := httptest.NewRecorder()
		query.ServeHTTP(reply, request)
		require.Equal(t, http.StatusOK, reply.Code)
		require.NoError(t, stop())
		numbers, sum := w.effects("x")
		assert.Equal(t, []uint64{1, 1, 2}, numbers)
		assert.Equal(t, 7, sum)
	})
}

// The messages of a split event have no position, so a handler that commits positions would refuse
// them forever.
func TestAHandlerOfPositionsGetsNoSplitEvents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		app, err := millrace.Open(t.Context(), w.client, millrace.Config{ExistingTables: true})
		require.NoError(t, err)
		_, err = millrace.Repository(app, splitAccounts, repository.Config{})
		require.NoError(t, err)
		others := aggregate.Define[struct{}]("other", deposit{}).WithUpcasters(aggregate.Rename("paid", "deposited"), aggregate.Drop("noted"))
		_, err = millrace.Repository(app, others, repository.Config{})
		require.NoError(t, err)
		external := func(c *subscriber.Config) { c.Positions = w.store }
		var refused *millrace.ConfigError
		require.ErrorAs(t, app.Handle(millrace.Group{Name: "totals", Topics: []string{topic}, Subscriber: external}, w.react(w.noting())), &refused)
		assert.Contains(t, refused.Error(), "App.ProjectSQL")
		require.NoError(t, app.Handle(millrace.Group{Name: "totals", Topics: []string{"other"}, Subscriber: external}, w.react(w.noting())))

		config := w.config(w.j, w.store)
		config.Definitions = []aggregate.AnyDefinition{splitAccounts}
		w.write("x", 0, PaidTwice{1, 2})
		_, messages := w.subscribe(config)
		err = w.react(w.noting())(next(t, messages))
		require.ErrorIs(t, err, subscriber.ErrNoPosition)
		require.ErrorContains(t, err, "part 1/2")
	})
}
