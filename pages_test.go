package millrace_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

var audit = millrace.Group{Name: "audit", Topics: []string{"order"}}

func ack(*message.Message) error { return nil }

// query sends a query with a token, and returns the status of the reply and the last error.
func query(app *millrace.App, group string, config consistency.Config) func(aggregate.Token) (status int, failed error) {
	var failed error
	config.OnError = func(_ *http.Request, err error) { failed = err }
	handler := app.Consistent(group, config)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func(token aggregate.Token) (int, error) {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set(consistency.Header, token.String())
		reply := httptest.NewRecorder()
		failed = nil
		handler.ServeHTTP(reply, request)
		return reply.Code, failed
	}
}

// tokenOf returns a token of some aggregates of a type.
func tokenOf(aggregates int, kind string) (token aggregate.Token) {
	for n := range aggregates {
		token = append(token, aggregate.VersionedID{ID: aggregate.ID{Type: kind, Value: strconv.Itoa(n)}, Version: 1})
	}
	return token
}

func TestAQueryOfAGroupThatIsAddedLaterWaitsForIt(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	ask := query(app, "audit", consistency.Config{Timeout: patience})
	require.NoError(t, app.Handle(audit, ack))
	placed := testjournal.Execute(t, repo, "1", place("tea"))
	status, err := ask(placed.Token())
	assert.Equal(t, http.StatusServiceUnavailable, status)
	require.ErrorIs(t, err, millrace.ErrNotRunning)
	status, _ = ask(nil)
	assert.Equal(t, http.StatusOK, status, "a query without a token does not wait")
	status, err = ask(tokenOf(20, "order").And(tokenOf(20, "other")))
	assert.Equal(t, http.StatusServiceUnavailable, status, "it is not known yet how many aggregates count")
	require.ErrorIs(t, err, millrace.ErrNotRunning)

	start(t, app)

	other := aggregate.Token{{ID: aggregate.ID{Type: "other", Value: "1"}, Version: 1}}
	status, err = ask(placed.Token().And(other))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status, "the group does not have the other topic")
}

func TestAQueryOfAGroupThatTheAppLacksIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(*millrace.App) error{
		`this App has no groups`: func(*millrace.App) error { return nil },
		`this App has the groups ["audit" "mail"]`: func(app *millrace.App) error {
			if err := app.Handle(millrace.Group{Name: "mail", Topics: []string{"order"}}, ack); err != nil {
				return err
			}
			return app.Handle(audit, ack)
		},
	} {
		app := open(t, dynamotest.New(t))
		require.NoError(t, add(app))
		ask := query(app, "audits", consistency.Config{Timeout: time.Millisecond})
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
		require.NoError(t, err)
		require.NoError(t, app.Serve(listener, &http.Server{ReadHeaderTimeout: time.Second}))

		_, err = app.Start(t.Context())

		var refused *millrace.ConfigError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "Consistent", refused.Field)
		assert.ErrorContains(t, err, `"audits"`)
		assert.ErrorContains(t, err, name)
		<-app.Stopped()
		require.ErrorIs(t, listener.Close(), net.ErrClosed, "its server is stopped")
		status, err := ask(aggregate.Token{{ID: aggregate.ID{Type: "order", Value: "1"}, Version: 1}})
		assert.Equal(t, http.StatusServiceUnavailable, status)
		require.ErrorAs(t, err, &refused)
	}
}

func TestAQueryMayBeOfAGroupOfAnotherProgram(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	other := open(t, db)
	require.NoError(t, other.Handle(audit, ack))
	start(t, other)
	app := open(t, db)
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	ask := query(app, "audit", consistency.Config{Timeout: patience, Topics: []string{"order"}})
	start(t, app)

	placed := testjournal.Execute(t, repo, "1", place("tea"))
	status, err := ask(placed.Token())

	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
}

// The group may have joined the topic never, not yet, or not since an operator has removed it.
func TestAQueryWaitsForATopicThatTheGroupHasNotJoined(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	other := open(t, db)
	require.NoError(t, other.Handle(audit, ack))
	start(t, other)
	app := open(t, db)
	ask := query(app, "audit", consistency.Config{Timeout: 100 * time.Millisecond, Topics: []string{"order", "refund"}})
	start(t, app)

	status, err := ask(tokenOf(1, "refund"))

	assert.Equal(t, http.StatusServiceUnavailable, status)
	require.ErrorIs(t, err, groups.ErrNotApplied)
	status, err = ask(aggregate.Token{{ID: aggregate.ID{Type: "refund", Value: "1"}}})
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status, "nothing was written")
}

func TestAListOfNoTopicsMeansTheTopicsOfTheGroup(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	require.NoError(t, app.Handle(audit, ack))
	ask := query(app, "audit", consistency.Config{Timeout: 100 * time.Millisecond, Topics: []string{}})
	start(t, app)
	status, err := ask(tokenOf(21, "other"))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
}

func TestAQueryMayBeAddedWhileTheAppStarts(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	require.NoError(t, app.Handle(audit, ack))
	added := make(chan struct{})
	go func() {
		defer close(added)
		for range 100 {
			query(app, "audit", consistency.Config{})
		}
	}()
	start(t, app)
	<-added
}

func TestAQueryOfATopicThatTheGroupLacksFailsBeforeItsTimeout(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app := open(t, dynamotest.New(t))
		require.NoError(t, app.Handle(audit, ack))
		ask := query(app, "audit", consistency.Config{Topics: []string{"ordre"}, Timeout: time.Hour})
		start(t, app)
		begun := time.Now()

		status, err := ask(tokenOf(1, "ordre"))

		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.ErrorAs(t, err, new(*groups.NoTopicError))
		assert.Less(t, time.Since(begun), 2*time.Second)
	})
}

func TestAQueryOfAReadModelWaitsForTheGenerationThatItReads(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	var applied [3]atomic.Int64 // by generation
	model, err := app.ReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}, Refresh: 10 * time.Millisecond, MaxAge: -1},
		func(_ context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
			return []projection.Reaction{projection.On(func(context.Context, placed, *journal.Record) ([]projection.Write, error) {
				applied[g.Number].Add(1)
				return nil, nil
			})}, nil
		})
	require.NoError(t, err)
	var generation, events int64
	handler := app.Consistent("items", consistency.Config{Timeout: patience})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switched, err := model.Begin(r.Context())
		assert.NoError(t, err)
		assert.NoError(t, model.CatchUp(r.Context(), switched, nil))
		assert.NoError(t, model.Switch(r.Context(), switched))
		g, err := model.Serving(r.Context())
		assert.NoError(t, err)
		generation, events = int64(g.Number), applied[g.Number].Load()
	}))
	start(t, app)
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set(consistency.Header, testjournal.Execute(t, repo, "1", place("tea")).Token().String())

	handler.ServeHTTP(httptest.NewRecorder(), request)

	assert.EqualValues(t, 1, generation, "the one that has served before")
	assert.EqualValues(t, 1, events)
	now, err := model.Serving(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, now.Number)
}
