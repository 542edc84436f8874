package subscriber_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestDeliveriesWaitWhileManyPositionsCannotBeStored(t *testing.T) {
	t.Parallel()
	const aggregates, most, inFlight = 200, 20, 4
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1})
	for n := range aggregates {
		write(t, j, fmt.Sprint(n), 0, 1)
	}
	config := quick(j)
	config.MaxInFlight = inFlight
	sub, messages := subscribe(t, config, subscriber.MaxUnstored(most))
	eventually(t, "it has the shard", func() bool { return len(sub.Shards()) == 1 })
	refused := db.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"))
	go func() {
		for msg := range messages {
			msg.Ack()
		}
	}()
	eventually(t, "many are acked", func() bool { return sub.Stats().Acked >= most })
	before := refused.Fired()
	eventually(t, "positions are refused", func() bool { return refused.Fired() > before+2*most })
	acked := sub.Stats().Acked
	assert.LessOrEqual(t, int(acked), most+inFlight, "those that were out already")

	refused.Remove()
	eventually(t, "all positions are stored", func() bool { return sub.Stats().Positions == aggregates })
}

func TestPositionsAreStoredEarlyWhenManyAreUnstored(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const aggregates, most = 400, 20
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		before := earlier(t, db.Client())
		for n := range aggregates {
			write(t, before, fmt.Sprint(n), 0, 1)
		}
		j := open(t, db.Client())
		config := quick(j)
		config.Timing.CommitInterval, config.MaxInFlight, config.Timing.LeaseDuration = time.Minute, 4, time.Hour
		sub, messages := subscribe(t, config, subscriber.MaxUnstored(most))
		go func() {
			for msg := range messages {
				msg.Ack()
			}
		}()
		time.Sleep(30 * time.Second)
		assert.EqualValues(t, aggregates, sub.Stats().Acked)
		assert.GreaterOrEqual(t, sub.Stats().Positions, uint64(aggregates-most-4))

		// In an outage of the store, the interval holds.
		refused := db.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), onRow("position/", ""))
		for n := range 10 * most {
			write(t, j, fmt.Sprint("later", n), 0, 1)
			time.Sleep(time.Second)
		}
		assert.Less(t, refused.Fired(), 20*most, "it makes few attempts")
		assert.LessOrEqual(t, sub.Stats().Acked, uint64(aggregates+2*most))
	})
}
