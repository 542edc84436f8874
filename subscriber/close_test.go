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

	"github.com/millrace-dev/millrace/subscriber"
)

// Not parallel: it counts the goroutines of the process.
func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	j := setup(t, 4)
	idle := j.Client().(*dynamodb.Client).Options().HTTPClient.(*http.Client).CloseIdleConnections
	write(t, j, "x", 0, 50)
	idle()
	before := runtime.NumGoroutine()
	for range 3 {
		sub, messages := subscribe(t, quick(j))
		receiveAll(t, messages, 5)
		_, err := sub.Subscribe(t.Context(), topic) // stands by
		require.NoError(t, err)
		receive(t, messages).Nack()
		receive(t, messages) // never answered
		require.NoError(t, sub.Close())
	}
	if !assert.Eventually(t, func() bool {
		idle()
		return runtime.NumGoroutine() <= before+1 // with the one that asks
	}, patience, 10*time.Millisecond, "all goroutines end") {
		stacks := make([]byte, 1<<20)
		t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
	}
}

func TestAHandlerThatDidNotAnswerInTimeMovesNoPositionOnceTheShardIsFree(t *testing.T) {
	t.Parallel()
	for name, acked := range map[string]int{"the first event": 0, "a later one": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := setup(t, 1)
			write(t, j, "x", 0, 5)
			config := quick(j)
			config.CloseTimeout = 50 * time.Millisecond
			sub, messages := subscribe(t, config)
			receiveAll(t, messages, acked)
			msg := receive(t, messages)
			position, ok := subscriber.PositionFromContext(msg.Context())
			require.True(t, ok)
			require.NoError(t, sub.Close())

			err := position.Commit(t.Context(), func(ctx context.Context, advance subscriber.Advance) error {
				_, err := j.Client().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{advance.Item}})
				return err
			})
			var refused *types.TransactionCanceledException
			require.ErrorAs(t, err, &refused)

			_, messages = subscribe(t, quick(j))
			assert.Equal(t, expect("x", acked+1, 5), receiveAll(t, messages, 5-acked))
		})
	}
}
