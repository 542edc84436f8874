package millrace_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
)

// A wake-up has told one group of the second event, before the read model has begun. The tail index
// does not show the event yet.
func TestSettleWaitsForAnEventThatAnotherGroupHasHandledAndTheIndexDoesNotShow(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app := open(t, db, seldom)
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		handled := make(chan string, 2)
		require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(msg *message.Message) error {
			handled <- msg.UUID
			return nil
		}))
		build, reactions := make(chan struct{}), 0
		_, err = app.ReadModel(t.Context(), readmodel.Config{Name: "names", Topics: []string{"order"}},
			func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
				<-build
				return []projection.Reaction{projection.On(func(context.Context, placed, *journal.Record) ([]projection.Write, error) {
					reactions++
					return nil, nil
				})}, nil
			})
		require.NoError(t, err)
		start(t, app)
		testjournal.Execute(t, repo, "1", place("tea"))
		<-handled
		db.Inject(dynamotest.DelayIndex(10*time.Second, 10*time.Second))
		testjournal.Execute(t, repo, "1", place("more tea"))
		<-handled
		close(build)

		require.NoError(t, app.Settle(t.Context()))

		assert.Equal(t, 2, reactions)
	})
}
