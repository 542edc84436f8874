package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
)

// memory is a store of positions outside of DynamoDB.
type memory struct {
	mu   sync.Mutex
	rows map[string]struct{ epoch, position uint64 }
	// advance replaces Advance, if it is not nil.
	advance func(move func() error) error
}

func (m *memory) Claim(_ context.Context, group subscriber.GroupKey, id aggregate.ID, epoch uint64) (uint64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(group, id)
	row, found := m.rows[key]
	if row.epoch > epoch {
		return 0, false, subscriber.ErrFenced
	}
	row.epoch = epoch
	m.rows[key] = row
	return row.position, found, nil
}

func (m *memory) Advance(_ context.Context, group subscriber.GroupKey, id aggregate.ID, epoch, from, to uint64) error {
	move := func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		key := fmt.Sprint(group, id)
		row := m.rows[key]
		if row.epoch != epoch || row.position != from {
			return subscriber.ErrFenced
		}
		row.position = to
		m.rows[key] = row
		return nil
	}
	if m.advance != nil {
		return m.advance(move)
	}
	return move()
}

func TestAnEventIsSkippedOnceIfPositionsAreInAnotherStore(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection is gone")
	for name, fails := range map[string]func(move func() error) error{
		"without trouble":    func(move func() error) error { return move() },
		"nothing gets there": func(func() error) error { return broken },
		"the reply is lost":  func(move func() error) error { _ = move(); return broken },
		"it is done afterwards": func(move func() error) error {
			time.AfterFunc(20*time.Millisecond, func() { _ = move() })
			return broken
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := setup(t, 1)
			write(t, j, "x", 0, 3)
			store := &memory{rows: map[string]struct{ epoch, position uint64 }{}}
			config := quick(j)
			config.Timing.CommitInterval = time.Hour // so that only the skip advances
			config.Positions, config.Failures = store, subscriber.Skip(2)
			var failing sync.Once
			store.advance = func(move func() error) (err error) {
				first := false
				failing.Do(func() { first, err = true, fails(move) })
				if first {
					return err
				}
				return move()
			}
			sub, messages := subscribe(t, config)

			receiveAll(t, messages, 1)
			nack(t, messages, "x/2", 2)
			assert.Equal(t, expect("x", 3, 3), receiveAll(t, messages, 1), "it does not come again")

			assert.Equal(t, []uint64{2}, skippedNumbers(t, j))
			assert.EqualValues(t, 1, sub.Stats().Skipped)
		})
	}
}

func TestTheRecordOfAnEventThatAnotherMemberHasTakenOverIsWithdrawn(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	store := &memory{rows: map[string]struct{ epoch, position uint64 }{}}
	config := quick(j)
	config.Positions, config.Failures = store, subscriber.Skip(1)
	recorded := make(chan int, 1)
	store.advance = func(func() error) error {
		recorded <- len(skipped(t, j))
		return fmt.Errorf("a newer epoch: %w", subscriber.ErrFenced)
	}
	_, messages := subscribe(t, config)
	nack(t, messages, "x/1", 1)

	assert.Equal(t, 1, <-recorded, "the record comes first")
	eventually(t, "there is no record", func() bool { return len(skipped(t, j)) == 0 })
}

func TestAMemberThatAnotherStoreFencesWritesNoRecord(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j, faulty := open(t, client), dynamotest.NewProxy(t, client)
		write(t, j, "x", 0, 1)
		store := &memory{rows: map[string]struct{ epoch, position uint64 }{}}
		recording := faulty.Record()
		config := quick(open(t, faulty.Client(testdb.Once)))
		config.Positions, config.Failures = store, subscriber.Skip(1)
		_, messages := subscribe(t, config)
		msg := receive(t, messages)
		_, _, err := store.Claim(t.Context(), subscriber.GroupKey{Name: "group"}, account("x"), 99)
		require.NoError(t, err)
		msg.Nack()

		eventually(t, "it releases the shard", func() bool { return membership(t, j).Epochs[0] > 1 })
		assert.Empty(t, recording.Calls("PutItem"))
		assert.Empty(t, skipped(t, j))
	})
}
