package journal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// A connection may be dead, and the caller's context may have no deadline.
func TestAReadWithoutAReplyIsGivenUp(t *testing.T) {
	t.Parallel()
	for layout := range commitOperations {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				s := setup(t, journal.Config{Layout: layout})
				mustAppend(t, s, one("a"))
				proxy := dynamotest.NewProxy(t, s.client)
				j := s.through(t, proxy.Client(testdb.Once), func(*journal.Config) {})
				hung := proxy.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }), dynamotest.Times(2))

				_, err := j.Head(t.Context(), user("a"))
				require.ErrorIs(t, err, journal.ErrUnavailable)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "it is not the caller's deadline")
				for _, err := range j.AllEvents(t.Context(), user("a")) {
					require.ErrorIs(t, err, journal.ErrUnavailable)
				}
				assert.Equal(t, 2, hung.Fired())
				mustHead(t, j, user("a"))

				canceled, cancel := context.WithCancel(t.Context())
				proxy.Inject(dynamotest.Pause(func(ctx context.Context) { cancel(); <-ctx.Done() }), dynamotest.Times(1))
				_, err = j.Head(canceled, user("a"))
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, journal.ErrUnavailable)
			})
		})
	}
}
