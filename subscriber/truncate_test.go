package subscriber_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// truncated returns a journal of one shard in which the events of an aggregate before a number were
// removed.
func truncated(t *testing.T, layout journal.Layout, events int, before uint64) *journal.Journal {
	t.Helper()
	j := testjournal.New(t, testdb.Client(t), journal.Config{Shards: 1, Layout: layout})
	// each in its own commit, because the packed layout removes whole commits
	for n := range events - 1 {
		write(t, j, "x", n, 1)
	}
	testjournal.Append(t, j, storage.Commit{
		Aggregate: account("x"), Expected: uint64(events - 1), Events: []storage.Event{{Payload: []byte(fmt.Sprintf("x/%d", events))}},
		Snapshot: &journal.Snapshot{Number: uint64(events), Payload: []byte("state")},
	})
	require.NoError(t, j.Truncate(t.Context(), account("x"), before, journal.RemoveOptions{}))
	return j
}

func TestANewGroupPassesOverEventsThatWereRemoved(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for _, before := range []uint64{2, 5, 20, 30} { // read by key and from the index
			j := truncated(t, layout, 30, before)
			log := &notes{}
			sub, err := subscriber.NewSubscriber(quick(j), log)
			require.NoError(t, err)
			messages, err := sub.Subscribe(t.Context(), topic)
			require.NoError(t, err)

			assert.Equal(t, expect("x", int(before), 30), receiveAll(t, messages, 30-int(before)+1))

			assert.Equal(t, before-1, sub.Stats().Truncated)
			assert.Zero(t, sub.Stats().Failures, "they are not taken for a gap")
			require.NoError(t, sub.Close())
			sub, messages = subscribe(t, quick(j))
			write(t, j, "x", 30, 1)
			assert.Equal(t, expect("x", 31, 31), receiveAll(t, messages, 1))
			assert.Zero(t, sub.Stats().Truncated)
		}
	})
}

func TestAGroupThatLagsBehindADeletionFinishesTheAggregate(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "x", 0, 12)
		sub, messages := subscribe(t, quick(j))
		first := receive(t, messages)
		require.NoError(t, j.Delete(t.Context(), account("x"), 12, journal.RemoveOptions{}))
		first.Ack()
		write(t, j, "y", 0, 1)

		// Events that the group had read before may still be delivered. Nothing blocks.
		eventually(t, "the group is through", func() bool {
			select {
			case msg := <-messages:
				msg.Ack()
			default:
			}
			stats := sub.Stats()
			return stats.Acked+stats.Truncated == 13
		})
		assert.Zero(t, sub.Stats().Failures)
	})
}
