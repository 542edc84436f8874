package subscriber_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// strict is a store that refuses an Advance from another position than the stored one. The reply to
// the first Advance is lost.
type strict struct {
	mu        sync.Mutex
	positions map[aggregate.ID]uint64
	epochs    map[aggregate.ID]uint64
	advanced  int
}

func (s *strict) Claim(_ context.Context, _ subscriber.GroupKey, id aggregate.ID, epoch uint64) (uint64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs[id] > epoch {
		return 0, false, subscriber.ErrFenced
	}
	s.epochs[id] = epoch
	position, found := s.positions[id]
	return position, found, nil
}

func (s *strict) Advance(_ context.Context, _ subscriber.GroupKey, id aggregate.ID, epoch, from, to uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs[id] != epoch || s.positions[id] != from {
		return subscriber.ErrFenced
	}
	s.positions[id] = to
	if s.advanced++; s.advanced == 1 {
		return errors.New("the reply was lost")
	}
	return nil
}

func TestABaselineWhoseReplyWasLostIsStoredOnce(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, earlier(t, j.Client()), "x", 0, 3)
		config := quick(j)
		config.Start = subscriber.Now()
		config.Positions = &strict{positions: map[aggregate.ID]uint64{}, epochs: map[aggregate.ID]uint64{}}
		sub, messages := subscribe(t, config)
		eventually(t, "it has the shard", func() bool { return len(sub.Shards()) == 1 })
		epoch := sub.Shards()[0].Epoch
		write(t, j, "x", 3, 1)
		assert.Equal(t, expect("x", 4, 4), receiveAll(t, messages, 1))
		require.Equal(t, epoch, sub.Shards()[0].Epoch, "the member keeps its shard")
	})
}

// The clocks of two processes differ, although both are corrected. A reply to a request is not lost
// because of that.
func TestAGroupThatStartsNowGetsWhatASlowClockDatesEarlier(t *testing.T) {
	t.Parallel()
	for name, subscribe := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, 4, func(t *testing.T, client *dynamodb.Client) {
				c := quick(open(t, client))
				c.Start = subscriber.Now()
				sub, messages := subscribe(t, c)
				eventually(t, "it has the shards", func() bool { return len(sub.Shards()) == 4 })

				slow := at(t, client, func() time.Time { return time.Now().Add(-1500 * time.Millisecond) })
				write(t, slow, "reply", 0, 1)

				assert.Equal(t, expect("reply", 1, 1), receiveAll(t, messages, 1))
			})
		})
	}
}

func TestAGroupThatStartsLaterGetsNothingBefore(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		config := quick(j)
		config.Start = subscriber.At(time.Now().Add(time.Hour))
		// This keeps the work in two fake hours small.
		config.Timing.PollInterval, config.Timing.MaxPollInterval, config.Timing.CommitInterval = 10*time.Second, 10*time.Second, time.Second
		_, messages := subscribe(t, config)
		for n := range 3 {
			time.Sleep(10 * time.Minute)
			write(t, j, "x", n, 1)
		}

		time.Sleep(time.Hour)
		write(t, j, "x", 3, 1)

		assert.Equal(t, expect("x", 4, 4), receiveAll(t, messages, 1))
	})
}

// slowOnce delays the first request, like a new connection.
type slowOnce struct {
	to   dynamodb.HTTPClient
	done bool
}

func (s *slowOnce) Do(r *http.Request) (*http.Response, error) {
	if !s.done {
		s.done = true
		time.Sleep(4900 * time.Millisecond)
	}
	return s.to.Do(r)
}

// A slow first reply shows little about the clock.
func TestAGroupThatStartsNowAfterASlowReplyMissesNothing(t *testing.T) {
	t.Parallel()
	for name, subscribe := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := dynamotest.New(t)
				require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
				db.Clock().Advance(-5 * time.Second) // this machine is ahead
				slow := &slowOnce{}
				c := quick(open(t, db.Client(func(o *dynamodb.Options) { slow.to, o.HTTPClient = o.HTTPClient, slow })))
				c.Start, c.Timing.TrailingDelay, c.Timing.MaxPollInterval = subscriber.Now(), 10*time.Second, time.Second
				_, messages := subscribe(t, c)

				write(t, at(t, db.Client(), db.Clock().Now), "reply", 0, 1)

				assert.Equal(t, expect("reply", 1, 1), receiveAll(t, messages, 1))
			})
		})
	}
}
