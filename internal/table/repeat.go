package table

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Settings of the quotas. The tokens of a shard are fewer than those of the whole, so that one hot
// partition does not use up what the others need. mostStretch is the largest factor by which
// a pause grows. With it, a single caller waits about as long as a table with a few units a second
// needs to take its commit.
const (
	tokensOfAll   = 100
	tokensOfShard = 50
	tokensASecond = 10
	mostStretch   = 12
	mostHotShards = 1000
)

// quotas limit how often throttled commits are sent again: all of them, and those of each logical
// shard. A shard has a partition of its own in the tail index, and in the classic layout also in
// the table. So a partition at its limit has the tokens that its own successes return, and the
// commits of other shards do not wait for them.
type quotas struct {
	all *retry.Quota

	mu  sync.Mutex
	hot map[hotShard]*retry.Quota // only of shards that were throttled lately
}

type hotShard struct {
	aggregateType string
	number        int
}

func newQuotas() *quotas {
	return &quotas{all: retry.NewQuota(tokensOfAll, tokensASecond), hot: map[hotShard]*retry.Quota{}}
}

// of returns the quotas that a repetition needs. It keeps a new one only if add is true.
func (q *quotas) of(shard *hotShard, add bool) []*retry.Quota {
	if shard == nil {
		return []*retry.Quota{q.all}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.hot[*shard]
	if own == nil && add && len(q.hot) < mostHotShards {
		own = retry.NewQuota(tokensOfShard, tokensASecond)
		q.hot[*shard] = own
	}
	if own == nil {
		return []*retry.Quota{q.all}
	}
	return []*retry.Quota{own, q.all}
}

// succeeded returns tokens, and forgets a shard that has all of them.
func (q *quotas) succeeded(shard *hotShard) {
	of := q.of(shard, false)
	for _, quota := range of {
		quota.Succeeded()
	}
	if len(of) == 2 && of[0].Fill() == 1 {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.hot, *shard)
	}
}

// take waits for the tokens of a repetition. It returns false if there are none in time.
func (q *quotas) take(ctx context.Context, shard *hotShard, within time.Duration) bool {
	end := time.Now().Add(within)
	for _, quota := range q.of(shard, true) {
		if !quota.Take(ctx, time.Until(end)) {
			return false
		}
	}
	return true
}

// stretched returns a longer pause if less than half of the tokens are left, so that fewer
// repetitions are needed for each success.
func (q *quotas) stretched(shard *hotShard, pause time.Duration) time.Duration {
	fill := 1.0
	for _, quota := range q.of(shard, true) {
		fill = min(fill, quota.Fill())
	}
	stretch := 1 + (mostStretch-1)*max(0, 1-2*fill)
	return max(pause, min(time.Second, time.Duration(float64(pause)*stretch)))
}

// subject is a Sending that is about one aggregate.
type subject interface{ Subject() aggregate.ID }

// shardOf returns the shard of a commit, and nil if it is about several aggregates.
func (t *Table) shardOf(w Sending) *hotShard {
	if s, ok := w.(subject); ok {
		id := s.Subject()
		return &hotShard{id.Type, t.Shard(id)}
	}
	return nil
}

// mayRepeat waits before a commit is sent again that was sent at a time and failed. It returns
// false if the retry budget or ctx ends before.
func (t *Table) mayRepeat(ctx context.Context, w Sending, pause time.Duration, sent time.Time, err error) bool {
	defer retry.BudgetOf(ctx).Begin(sent)()
	throttled := dynamo.IsThrottle(err)
	if throttled && pause != backoff.Stop {
		pause = t.quotas.stretched(t.shardOf(w), pause)
	}
	if pause > t.left(ctx, w) || !retry.Sleep(ctx, pause) {
		return false
	}
	return !throttled || t.quotas.take(ctx, t.shardOf(w), t.left(ctx, w))
}

// again waits before a request is repeated that was sent at a time. It returns false if wait or ctx
// ends, or the budget that the requests of ctx share.
func (t *Table) again(ctx context.Context, wait backoff.BackOff, sent time.Time) bool {
	budget := retry.BudgetOf(ctx)
	defer budget.Begin(sent)()
	pause := wait.NextBackOff()
	return pause <= budget.Left(max(pause, 0)) && retry.Sleep(ctx, pause)
}

// sharing adds to the options of a request that the retries of the SDK take their time from the
// budget that the requests of ctx share.
func sharing(ctx context.Context, options []func(*dynamodb.Options)) []func(*dynamodb.Options) {
	budget := retry.BudgetOf(ctx)
	if budget == nil {
		return options
	}
	return append(options[:len(options):len(options)], func(o *dynamodb.Options) {
		if o.Retryer == nil {
			return
		}
		if v2, ok := o.Retryer.(aws.RetryerV2); ok {
			o.Retryer = sharedRetryerV2{sharedRetryer{v2, budget}, v2}
		} else {
			o.Retryer = sharedRetryer{o.Retryer, budget}
		}
	})
}

// sharedRetryer is the retryer of a client that takes its delays from a budget.
type sharedRetryer struct {
	aws.Retryer
	budget *retry.Budget
}

type sharedRetryerV2 struct {
	sharedRetryer
	v2 aws.RetryerV2
}

var errBudgetEnded = errors.New("the retry budget of the call has ended")

func (r sharedRetryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	if r.budget.Left(time.Hour) <= 0 {
		return nil, errBudgetEnded
	}
	return r.Retryer.GetRetryToken(ctx, err) //nolint:wrapcheck // it is the SDK's own
}

func (r sharedRetryer) RetryDelay(attempt int, err error) (time.Duration, error) {
	delay, failed := r.Retryer.RetryDelay(attempt, err)
	delay = max(0, r.budget.Left(delay))
	r.budget.Spend(delay)
	return delay, failed //nolint:wrapcheck // it is the SDK's own
}

func (r sharedRetryerV2) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	return r.v2.GetAttemptToken(ctx) //nolint:wrapcheck // it is the SDK's own
}
