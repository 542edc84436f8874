package subscriber_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
)

// This test is not parallel, because it counts the goroutines of the process.
func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	j := setup(t, 4)
	idle := j.Client().(*dynamodb.Client).Options().HTTPClient.(*http.Client).CloseIdleConnections
	write(t, j, "x", 0, 50)
	idle()
	before := runtime.NumGoroutine()
	for range 3 {
		sub, messages := subscribe(t, unanswered(quick(j)))
		receiveAll(t, messages, 5)
		_, err := sub.Subscribe(t.Context(), topic) // a member without a shard
		require.NoError(t, err)
		receive(t, messages).Nack()
		receive(t, messages) // never answered
		require.NoError(t, sub.Close())
	}
	if !assert.Eventually(t, func() bool {
		idle()
		return runtime.NumGoroutine() <= before+1 // including the goroutine that counts
	}, patience, 10*time.Millisecond, "all goroutines end") {
		stacks := make([]byte, 1<<20)
		t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
	}
}

func TestAMemberWhoseLeaveFailsTriesAgain(t *testing.T) {
	t.Parallel()
	client := create(t, 2)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 1)
	sub, messages := subscribe(t, eager(open(t, faulty.Client(testdb.Once))), often)
	receiveAll(t, messages, 1)
	require.Len(t, membership(t, j).Members, 1)
	failed := faulty.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"), onRow("shards", "REMOVE"), dynamotest.Times(2))

	require.NoError(t, sub.Close())

	assert.Equal(t, 2, failed.Fired())
	assert.Empty(t, membership(t, j).Members)
}

func TestAMemberThatClosesWithoutTheReplyToItsJoinLeaves(t *testing.T) {
	t.Parallel()
	client := create(t, 2)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	lost := faulty.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Timing.LeaseDuration = time.Minute // it waits for a tenth of that before it tries again
	sub, _ := subscribe(t, config)
	eventually(t, "it joins", func() bool { return lost.Fired() == 1 })
	unread := faulty.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.Times(1))

	require.NoError(t, sub.Close())

	assert.Equal(t, 1, unread.Fired())
	assert.Empty(t, membership(t, j).Members)
}

func TestAHandlerThatDidNotAnswerInTimeMovesNoPositionOnceTheShardIsFree(t *testing.T) {
	t.Parallel()
	for name, acked := range map[string]int{"the first event": 0, "a later one": 3} {
		for _, when := range []string{"after", "amid"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					j := setup(t, 1)
					write(t, j, "x", 0, 5)
					config := quick(j)
					config.CloseTimeout = 50 * time.Millisecond
					sub, messages := subscribe(t, config)
					receiveAll(t, messages, acked)
					position, ok := subscriber.PositionFromContext(receive(t, messages).Context())
					require.True(t, ok)
					if acked > 0 {
						eventually(t, "that is stored, as it cannot be amid a transaction", func() bool { return stored(t, j) == uint64(acked) })
					}

					begun, closed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
					commit := func() {
						ended <- position.Commit(context.WithoutCancel(t.Context()), func(ctx context.Context, advance subscriber.Advance) error {
							close(begun)
							<-closed
							_, err := j.Client().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{advance.Item}})
							return err
						})
					}
					if when == "amid" {
						go commit()
						<-begun
					}
					require.NoError(t, sub.Close())
					close(closed)
					if when == "after" {
						commit()
						require.ErrorIs(t, <-ended, subscriber.ErrFenced)
					} else {
						var refused *types.TransactionCanceledException
						require.ErrorAs(t, <-ended, &refused)
					}

					_, messages = subscribe(t, quick(j))
					assert.Equal(t, expect("x", acked+1, 5), receiveAll(t, messages, 5-acked))
				})
			})
		}
	}
}
