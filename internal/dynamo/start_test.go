package dynamo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestASlowStartIsReportedOnceWithItsReason(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		begun := time.Now()
		var after []time.Duration
		ctx := dynamo.OnSlowStart(t.Context(), func(err error) {
			assert.ErrorContains(t, err, "slow down")
			after = append(after, time.Since(begun))
		})

		err := dynamo.Start(ctx, func(context.Context) error {
			if time.Since(begun) > 10*time.Second {
				return nil
			}
			return &types.ProvisionedThroughputExceededException{Message: aws.String("slow down")}
		})

		require.NoError(t, err)
		assert.Equal(t, []time.Duration{time.Second}, after)
	})
}

func TestAStartThatSucceedsOrFailsAtOnceIsNotReported(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		ctx := dynamo.OnSlowStart(t.Context(), func(err error) { assert.NoError(t, err) })
		denied := errors.New("denied")

		require.NoError(t, dynamo.Start(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }))
		require.ErrorIs(t, dynamo.Start(ctx, func(context.Context) error { return denied }), denied)
		time.Sleep(time.Minute)
	})
}

func TestAStartEndsWithItsBudgetWhateverEachRequestRetries(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		begun := time.Now()
		throttled := &types.ProvisionedThroughputExceededException{Message: aws.String("slow down")}

		err := dynamo.Start(t.Context(), func(ctx context.Context) error {
			for range 4 { // several requests, each with retries of its own
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(7 * time.Second):
				}
			}
			return throttled
		})

		assert.Equal(t, dynamo.StartBudget, time.Since(begun))
		require.ErrorIs(t, err, throttled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}
