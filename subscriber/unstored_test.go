package subscriber_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestDeliveriesWaitWhileManyPositionsCannotBeStored(t *testing.T) {
	t.Parallel()
	const aggregates, most, inFlight = 200, 20, 4
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1}))
	j := open(t, db.Client())
	for n := range aggregates {
		write(t, j, fmt.Sprint(n), 0, 1)
	}
	config := subscriber.WithMaxUnstored(quick(j), most)
	config.MaxInFlight = inFlight
	sub, messages := subscribe(t, config)
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
