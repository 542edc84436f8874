package awslambda_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/awslambda"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func openParcels(t *testing.T) (*dynamotest.DB, *millrace.App, *repository.Repository[parcel]) {
	t.Helper()
	db := dynamotest.New(t)
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	repo, err := millrace.Repository(app, parcels, repository.Config{})
	require.NoError(t, err)
	return db, app, repo
}

// A failing event holds up its aggregate, and neither the stream nor other aggregates. A command
// that comes again is not executed again.
func TestAPoisonEventBlocksItsAggregateAlone(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, app, repo := openParcels(t)
		poisoned := true
		var mu sync.Mutex
		var labels []string
		require.NoError(t, app.HandleEvents(
			millrace.Group{Name: "labels", Topics: []string{"parcel"}},
			cqrs.NewGroupEventHandler(func(_ context.Context, e *sent) error {
				if e.To == "nowhere" && poisoned {
					return errors.New("no such place")
				}
				mu.Lock()
				defer mu.Unlock()
				labels = append(labels, e.To)
				return nil
			})))
		commands, err := command.Dispatch(app.Marshaler(), command.Handler("send", repo,
			func(s *send) (string, aggregate.Decision[parcel]) { return s.Parcel, s.decide }))
		require.NoError(t, err)
		function, err := awslambda.New(awslambda.Config{Journal: app.Journal(), CatchUp: app.CatchUp, Commands: commands, Metrics: io.Discard}, nil)
		require.NoError(t, err)
		w := &world{T: t, db: db, journal: app.Journal(), function: function}

		invoke := func(event object) string {
			reply, err := w.invoke(event)
			require.NoError(t, err)
			return reply
		}
		queue := func(id, parcel, to string) object {
			msg, err := app.Marshaler().Marshal(&send{parcel, to})
			require.NoError(t, err)
			m := queued(id, string(msg.Payload))
			m["messageAttributes"] = object{"name": object{"stringValue": msg.Metadata.Get("name"), "dataType": "String"}}
			return m
		}
		batch := records(queue("1", "a", "nowhere"), queue("2", "b", "Bern"), queue("3", "c", "Rome"))
		assert.JSONEq(t, failures(), invoke(batch))
		assert.JSONEq(t, failures(), invoke(batch), "SQS delivers again")
		assert.JSONEq(t, failures("4"), invoke(records(queued("4", "{}"), queue("5", "c", "Oslo"))), "unknown, and refused")

		assert.JSONEq(t, failures(), invoke(records(w.changes("INSERT")...)))
		assert.ElementsMatch(t, []string{"Bern", "Rome"}, labels)
		sweep := object{"detail-type": "Scheduled Event"}
		assert.Contains(t, invoke(sweep), `{"left":1,"due":"`)

		poisoned = false
		for range 60 {
			invoke(sweep)
			time.Sleep(5 * time.Second) // simulated
		}
		assert.ElementsMatch(t, []string{"Bern", "Rome", "nowhere"}, labels)
	})
}

// A slow handler in the same batch does not turn a retry into a lack of time.
func TestAnEventThatWaitsForARetryDoesNotFailTheInvocation(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, app, repo := openParcels(t)
		require.NoError(t, app.HandleEvents(
			millrace.Group{Name: "labels", Topics: []string{"parcel"}},
			cqrs.NewGroupEventHandler(func(_ context.Context, e *sent) error {
				switch e.To {
				case "nowhere":
					return errors.New("no such place")
				case "slow":
					time.Sleep(5 * time.Second)
				}
				return nil
			})))
		function, err := awslambda.New(awslambda.Config{Journal: app.Journal(), CatchUp: app.CatchUp, Metrics: io.Discard}, nil)
		require.NoError(t, err)
		w := &world{T: t, db: db, journal: app.Journal(), function: function}
		for _, to := range []string{"nowhere", "slow"} {
			_, err := repo.Execute(t.Context(), to, (&send{to, to}).decide)
			require.NoError(t, err)
			_, err = w.invoke(records(w.changes("INSERT")...)) // the retry is due meanwhile
			require.NoError(t, err, to)
		}
	})
}
