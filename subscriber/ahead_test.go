package subscriber_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// runs records the number of events of each transaction.
type runs struct {
	mu      sync.Mutex
	lengths []int
}

func (r *runs) add(events int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lengths = append(r.lengths, events)
}

func (r *runs) all() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lengths)
}

// ahead starts a member that takes runs of events. Each run commits the position unless handle
// fails.
func ahead(
	t *testing.T, config subscriber.Config, client journal.Client, handle func(context.Context, []*journal.Record) error,
) (*subscriber.Subscriber, *runs) {
	t.Helper()
	sub, messages := subscribe(t, config)
	eventually(t, "it is a member", func() bool { return len(membership(t, config.Journal).Members) > 0 })
	seen := &runs{}
	go func() {
		for msg := range messages {
			go answer(msg, func(msg *message.Message) error {
				position, _ := subscriber.PositionFromContext(msg.Context())
				return position.CommitAhead(msg.Context(), 100, func(ctx context.Context, a subscriber.Advance, records []*journal.Record) error {
					seen.add(len(records))
					if err := handle(ctx, records); err != nil {
						return err
					}
					return transact(ctx, client, a)
				})
			})
		}
	}()
	return sub, seen
}

func TestNoEventIsGivenUpForOneBehindItThatFails(t *testing.T) {
	t.Parallel()
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	for name, of := range map[string]struct {
		policy  subscriber.FailurePolicy
		goes    uint64 // the position at the end
		givenUp func(*testing.T, *journal.Journal) uint64
	}{
		"skip": {subscriber.Skip(1), 6, func(t *testing.T, j *journal.Journal) uint64 {
			return slices.Min(append(skippedNumbers(t, j), 100))
		}},
		"poison queue": {subscriber.PoisonQueue(1, queue, "poison"), 6, func(t *testing.T, _ *journal.Journal) uint64 {
			poisoned, err := queue.Subscribe(t.Context(), "poison")
			require.NoError(t, err)
			msg := receive(t, poisoned)
			assert.Equal(t, "x/4", string(msg.Payload))
			return 4
		}},
		"park": {subscriber.Park(1), 3, func(t *testing.T, j *journal.Journal) (number uint64) {
			eventually(t, "it is parked", func() bool {
				for parked, err := range groups.Of(j, "group", topic).Parked(context.Background(), aggregate.ID{}) {
					if err == nil {
						number = parked.Parked.Number
					}
				}
				return number > 0
			})
			return number
		}},
		"stop": {subscriber.Stop(1), 3, func(t *testing.T, j *journal.Journal) uint64 {
			eventually(t, "it is stopped", func() bool { return state(t, j).Stopped != nil })
			return state(t, j).Stopped.Number
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 1)
			j := open(t, client)
			write(t, j, "x", 0, 6)
			config := quick(j)
			config.Failures = of.policy
			_, seen := ahead(t, config, client, func(_ context.Context, records []*journal.Record) error {
				if slices.ContainsFunc(records, func(r *journal.Record) bool { return r.Number == 4 }) {
					return errors.New("it cannot be handled")
				}
				return nil
			})

			eventually(t, "the others are handled", func() bool { return stored(t, j) == of.goes })
			assert.EqualValues(t, 4, of.givenUp(t, j))
			assert.Greater(t, slices.Max(seen.all()), 1, "it failed together with others")
		})
	}
}

func TestNoEventIsGivenUpWhereManyTakeTooLong(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		const events, most = 30, 4
		write(t, j, "x", 0, events)
		config := quick(j)
		config.AckDeadline = time.Second
		config.Failures = subscriber.Skip(1)
		sub, seen := ahead(t, config, client, func(ctx context.Context, records []*journal.Record) error {
			if len(records) > most {
				<-ctx.Done()
			}
			return ctx.Err()
		})

		eventually(t, "all are handled", func() bool { return stored(t, j) == events })
		assert.Empty(t, skipped(t, j))
		assert.Greater(t, slices.Max(seen.all()), most, "some were too many")
		assert.Less(t, sub.Stats().Expired, uint64(events/3), "it learns how many it can take: %v", seen.all())
	})
}

// A message that is sent meanwhile would spend its time waiting, and count as failed.
func TestAnEventDoesNotComeAloneWhileItIsAmongOthers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		write(t, j, "x", 0, 3)
		config := quick(j)
		config.AckDeadline = 500 * time.Millisecond
		config.Failures = subscriber.Skip(5) // the event alone may take five times as long
		goOn := make(chan struct{})
		sub, seen := ahead(t, config, client, func(_ context.Context, records []*journal.Record) error {
			if len(records) > 1 {
				<-goOn
			}
			return nil
		})
		eventually(t, "it waits", func() bool { return sub.Stats().Failures >= 2 })
		assert.Len(t, seen.all(), 1)
		assert.EqualValues(t, 1, sub.Stats().Delivered)
		close(goOn)
		eventually(t, "all are handled", func() bool { return stored(t, j) == 3 })
		assert.Empty(t, skipped(t, j))
	})
}
