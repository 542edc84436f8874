package subscriber_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
)

// A member of an old release skips or defers an event and crashes, and its request arrives while
// the next owner, which blocks, handles the event. The next owner has claimed the position by
// reading it.
func TestALateSkipLeavesNoRecordOfAnEventThatWasHandled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy  subscriber.FailurePolicy
		handled int // events that the new owner has handled before it stores the position
	}{
		"the event alone":            {subscriber.Skip(1), 1},
		"the event and the next one": {subscriber.Skip(1), 2},
		"a deferred event":           {subscriber.Defer(subscriber.Backoff{Attempts: 5}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
				proxy := dynamotest.NewProxy(t, client)
				j, old := open(t, client), open(t, proxy.Client(testdb.Once))
				write(t, j, "x", 0, 3)
				// Otherwise the old member would own the shard in its first term.
				first, messages := subscribe(t, quick(j))
				receiveAll(t, messages, 1)
				require.NoError(t, first.Close())
				late := proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1),
					dynamotest.Matching(func(_ string, in any) bool {
						items := in.(*dynamodb.TransactWriteItemsInput).TransactItems
						return len(items) == 2 && items[1].Put != nil && items[1].Put.Item["skipped_at"] != nil
					}))
				config := quick(old)
				config.Failures = test.policy
				_, messages = subscribe(t, config)
				nack(t, messages, "x/2", 1)
				eventually(t, "the skip is on its way", func() bool { return late.Fired() == 1 })
				proxy.Inject(dynamotest.CutConnection()) // like a crash

				config = quick(j)
				config.Timing.CommitInterval = time.Hour
				owner, messages := subscribe(t, config)
				assert.Equal(t, expect("x", 2, 1+test.handled), receiveAll(t, messages, test.handled))
				require.Equal(t, 1, late.Arrive())
				require.Equal(t, []uint64{2}, skippedNumbers(t, j), "there was no newer owner, as far as the position shows")
				require.NoError(t, owner.Close())

				assert.Empty(t, skippedNumbers(t, j), "the event was handled")
				assert.EqualValues(t, 1+test.handled, stored(t, j))
			})
		})
	}
}
