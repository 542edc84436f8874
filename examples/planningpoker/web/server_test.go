package web_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/client"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestWhoWatchesOnAnotherServerSeesEveryRoundToItsEnd(t *testing.T) {
	t.Parallel()
	db := testdb.Client(t)
	here, there := serve(t, db, service.Config{}), serve(t, db, service.Config{})
	ada := visit(t, here.URL())
	ada.open(opening)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watcher := client.New(there.URL, http.DefaultTransport)

	var versions []uint64
	err := watcher.Watch(ctx, roomID, func(r web.Room) bool {
		versions = append(versions, r.Version)
		switch {
		case r.Version == 1:
			ada.join("Ada")
		case r.Round == 1 && r.Version == 2:
			ada.post("/rooms/"+roomID+"/pick", `{"card": "3"}`)
		case r.Revealed:
			assert.Equal(t, "3", r.Users[0].Card)
			ada.post("/rooms/"+roomID+"/refresh", `{}`)
		}
		return r.Round == 2
	})

	require.NoError(t, err)
	assert.IsNonDecreasing(t, versions)
	assert.EqualValues(t, 5, versions[len(versions)-1])
}

// looksTwice is a feed that shows a room twice, and calls a function in between.
type looksTwice struct {
	between func()
	events  *[]live.Update
}

func (f looksTwice) Serve(_ http.ResponseWriter, r *http.Request, _ string, show func(context.Context) (live.Update, error)) error {
	for range 2 {
		event, err := show(r.Context())
		if err != nil {
			return err
		}
		*f.events = append(*f.events, event)
		f.between()
	}
	return nil
}

func (looksTwice) Notify(string) {}

func TestAStreamEndsWhenItsRoomExpires(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t, dynamotest.WithExpiryDelay(time.Hour))
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	visit(t, s.URL()).open(opening)
	var events []live.Update
	handler := web.New(web.Config{View: s.View, Feed: looksTwice{func() { db.Clock().Advance(24 * time.Hour) }, &events}, Metrics: http.NotFoundHandler()})

	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rooms/"+roomID+"/events", nil))

	require.Len(t, events, 2)
	assert.Equal(t, []any{"room", "1", false}, []any{events[0].Name, events[0].ID, events[0].Last})
	assert.Equal(t, []any{"gone", true}, []any{events[1].Name, events[1].Last})
	assert.Contains(t, events[1].Data.(map[string]string)["detail"], "expired")
}

func TestWhoWaitsLearnsWhetherTheViewShowsTheCommand(t *testing.T) {
	t.Parallel()
	for reason, status := range map[error]int{
		nil: http.StatusCreated, groups.ErrNotApplied: http.StatusAccepted, errors.New("no answer"): http.StatusAccepted,
	} {
		s := serve(t, dynamotest.New(t).Client(), service.Config{})
		handler := web.New(web.Config{
			Rooms: s.Rooms, View: s.View, Feed: looksTwice{}, Metrics: http.NotFoundHandler(), Now: time.Now,
			Wait: func(context.Context, string, uint64) error { return reason }, Logger: slog.New(slog.DiscardHandler),
		})
		request := httptest.NewRequest(http.MethodPost, "/rooms?wait=true", strings.NewReader(opening))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()

		handler.ServeHTTP(recorder, request)

		assert.Equal(t, status, recorder.Code, reason)
		assert.JSONEq(t, `{"roomId": "`+roomID+`", "version": 1}`, recorder.Body.String())
	}
}

// opensAll accepts every command.
type opensAll struct{}

func (opensAll) Execute(
	context.Context, string, aggregate.Decision[room.Room], ...repository.Option,
) (done repository.Aggregate[room.Room], err error) {
	return done, nil
}

func TestWhoKnowsARoomCannotGuessTheNextOne(t *testing.T) {
	t.Parallel()
	handler := web.New(web.Config{Rooms: opensAll{}, Feed: looksTwice{}, Metrics: http.NotFoundHandler(), Now: time.Now})
	beginnings := map[[6]byte]bool{}
	for range 200 { // many of them in the same millisecond
		request := httptest.NewRequest(http.MethodPost, "/rooms", strings.NewReader(`{"name": "Sprint 12"}`))
		request.Header.Set("Content-Type", "application/json")
		request.AddCookie(&http.Cookie{Name: "poker_user", Value: strings.Repeat("0", 32)})
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		id, err := ulid.ParseStrict(strings.TrimPrefix(recorder.Header().Get("Location"), "/rooms/"))
		require.NoError(t, err)
		beginning := [6]byte(id.Entropy())
		require.False(t, beginnings[beginning], "an id must not be near another")
		beginnings[beginning] = true
	}
}

func TestThePageIsServedForEachRoomAndLoadsNothingFromOtherSites(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := stranger(t, s.URL())
	for _, path := range []string{"/", "/r/" + roomID} {
		got := ada.do(http.MethodGet, path, "")
		assert.Equal(t, http.StatusOK, got.status)
		assert.Contains(t, got.body, "<!DOCTYPE html>")
		assert.Contains(t, got.header.Get("Content-Security-Policy"), "default-src 'self'")
		assert.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
	}
}

func TestOperatorsAreTold(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := serve(t, db.Client(), service.Config{})
	operator := stranger(t, s.URL())
	assert.Equal(t, http.StatusOK, operator.do(http.MethodGet, "/healthz", "").status)
	assert.Equal(t, http.StatusOK, operator.do(http.MethodGet, "/readyz", "").status)
	var metrics reply
	require.Eventually(t, func() bool { // when the consumer has claimed its shards
		metrics = operator.do(http.MethodGet, "/metrics", "")
		return strings.Contains(metrics.body, `millrace_subscriber_shards_held{consumer_group="room-view"`)
	}, patience, 10*time.Millisecond)
	assert.Contains(t, metrics.body, `millrace_projection_events_applied_total{projection="room-view"} 0`)
	assert.Empty(t, metrics.header.Get("Set-Cookie"))
}

func TestAServerWhoseTablesDoNotAnswerIsNotReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table  string
		layout journal.Layout
	}{
		{"Room", journal.Classic}, {"OperationSnapshot", journal.Classic}, {"OperationSnapshot", journal.Packed}, {"Operation", journal.Packed},
	} {
		t.Run(c.table+" "+string(c.layout), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t)
			s := serve(t, db.Client(), service.Config{Layout: c.layout})
			fault := db.Inject(dynamotest.InternalError(), dynamotest.Table(c.table))
			got := stranger(t, s.URL()).do(http.MethodGet, "/readyz", "")
			fault.Remove()
			assert.Equal(t, http.StatusServiceUnavailable, got.status, got.body)
			assert.Positive(t, fault.Fired())
		})
	}
	var log bytes.Buffer
	unready := web.New(web.Config{
		Feed: looksTwice{}, Metrics: http.NotFoundHandler(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Ready: func(context.Context) error { return errors.New("the consumer of the view does not run") },
	})
	recorder := httptest.NewRecorder()
	unready.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	assert.Equal(t, http.StatusServiceUnavailable, recorder.Code)
	assert.NotContains(t, recorder.Body.String(), "does not run", "why is not for everybody")
	assert.Contains(t, log.String(), "does not run")
}
