package subscriber_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
)

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

func TestAClockThatWasAheadAndIsRightAgainHidesNothing(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	var ahead atomic.Bool
	ahead.Store(true)
	_, messages := subscribe(t, quick(at(t, client, func() time.Time {
		if ahead.Load() {
			return tomorrow()
		}
		return time.Now()
	})))
	// The tail shows it, because it is read up to tomorrow then.
	write(t, at(t, client, tomorrow), "x", 0, 1)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))

	ahead.Store(false)
	write(t, open(t, client), "y", 0, 1)
	assert.Equal(t, expect("y", 1, 1), receiveAll(t, messages, 1))
}

func TestACursorThatAFormerOwnerLeftInTheFutureHidesNothing(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := at(t, client, tomorrow)
	first, messages := subscribe(t, quick(j), subscriber.CursorInterval(time.Millisecond))
	write(t, j, "x", 0, 1)
	receiveAll(t, messages, 1)
	eventually(t, "its cursor is in the future", func() bool { return progress(t, j).Cursor.After(time.Now().Add(time.Hour)) })
	require.NoError(t, first.Close())

	_, messages = subscribe(t, quick(open(t, client)))
	write(t, open(t, client), "y", 0, 1)
	assert.Equal(t, expect("y", 1, 1), receiveAll(t, messages, 1))
}

func TestATimeOfReconciliationInTheFutureIsIgnored(t *testing.T) {
	t.Parallel()
	j, db, _ := late(t, "hidden") // only a reconciliation finds this aggregate
	config := quick(at(t, db.Client(), tomorrow))
	config.Timing.ReconcileInterval = 20 * time.Millisecond
	first, _ := subscribe(t, config, subscriber.CursorInterval(time.Millisecond))
	eventually(t, "it has reconciled tomorrow", func() bool { return progress(t, j).Reconciled.After(time.Now().Add(time.Hour)) })
	require.NoError(t, first.Close())

	config = quick(j)
	config.Timing.ReconcileInterval = 20 * time.Millisecond
	_, messages := subscribe(t, config)
	write(t, open(t, db.Client()), "hidden", 0, 1) // another Journal does not wake the subscriber
	assert.Equal(t, expect("hidden", 1, 1), receiveAll(t, messages, 1))
}

func TestClocksThatAreFarOffAreWarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offset time.Duration
		want   string
	}{
		"ahead":  {900 * time.Millisecond, "ahead of this process's clock"},
		"behind": {-900 * time.Millisecond, "long after their time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := create(t, 1)
				config := quick(open(t, client))
				config.Timing.TrailingDelay = time.Second
				log := &diary{}
				sub, err := subscriber.NewSubscriber(config, log)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, sub.Close()) })
				messages, err := sub.Subscribe(t.Context(), topic)
				require.NoError(t, err)
				eventually(t, "the tail is read to its end", func() bool {
					shards := sub.Shards()
					return len(shards) == 1 && shards[0].CaughtUp
				})

				write(t, at(t, client, func() time.Time { return time.Now().Add(c.offset) }), "x", 0, 1)

				receiveAll(t, messages, 1)
				eventually(t, "the warning is logged", func() bool { return len(log.of(c.want)) == 1 })
			})
		})
	}
}

// The position 0 of an aggregate that begins with its first event is stored too. Otherwise a later
// event with an earlier time would change where the group begins.
func TestAnAggregateThatBeginsWithItsFirstEventKeepsThatStart(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	start := time.Now()
	write1 := func(offset time.Duration, after int) {
		write(t, at(t, client, func() time.Time { return start.Add(offset) }), "x", after, 1)
	}
	config := unanswered(quick(open(t, client)))
	config.Start = subscriber.At(start)
	write1(time.Millisecond, 0)
	first, messages := subscribe(t, config)
	require.Equal(t, "x/1", string(receive(t, messages).Payload)) // never answered
	require.NoError(t, first.Close())

	write1(-time.Millisecond, 1) // its writer's clock is behind
	write1(2*time.Millisecond, 2)
	_, messages = subscribe(t, config)
	assert.Equal(t, expect("x", 1, 3), receiveAll(t, messages, 3))
}
