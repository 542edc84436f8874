package sequence

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func lanesFree() bool { return false }
func lanesBusy() bool { return true }
func trimNothing()    {}

// reserving returns a channel that is closed when the reservation is made.
func reserving(t *testing.T, b *Budget, busy func() bool, trim func()) <-chan error {
	t.Helper()
	reserved := make(chan error, 1)
	go func() { reserved <- b.Reserve(t.Context(), 10, busy, trim) }()
	return reserved
}

func notYet(t *testing.T, reserved <-chan error) {
	t.Helper()
	select {
	case err := <-reserved:
		assert.Fail(t, "it should wait", err)
	case <-time.After(3 * lull):
	}
}

func TestReadersWaitForTheHandlers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		b := &Budget{size: 100, lanes: 1}
		require.NoError(t, b.Reserve(t.Context(), 99, lanesBusy, trimNothing))
		require.NoError(t, b.Reserve(t.Context(), 10, lanesBusy, trimNothing))
		reserved := reserving(t, b, lanesBusy, func() { assert.Fail(t, "the lanes have enough to do") })
		notYet(t, reserved)
		b.Release(9)
		notYet(t, reserved)
		b.Release(1)
		require.NoError(t, <-reserved)
	})
}

func TestStreamsAreTrimmedWhileLanesAreFree(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		b := &Budget{size: 100, lanes: 1}
		b.take(120)
		reserved := reserving(t, b, lanesFree, func() { b.Release(7) }) // again and again
		require.NoError(t, <-reserved)
		assert.Equal(t, 99+10, b.used)
	})
}

func TestWhoeverStopsWaitingReservesNothing(t *testing.T) {
	t.Parallel()
	b := &Budget{size: 100, lanes: 1}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Reserve(ctx, 60, lanesFree, trimNothing), context.Canceled)
	assert.Zero(t, b.used)
}

func TestAStreamThatIsTrimmedKeepsItsFirstEvents(t *testing.T) {
	t.Parallel()
	b := &Budget{size: 10_000, lanes: 1}
	held := &buffer{}
	record := func(n uint64) *journaltype.Record { return &journaltype.Record{Number: n, Payload: make([]byte, 800)} }
	numbers := func() (got []uint64) {
		for _, r := range held.records {
			got = append(got, r.Number)
		}
		return got
	}
	size := SizeOf(record(1))
	for _, n := range []uint64{1, 4, 2, 2, 3} {
		held.add(record(n), b)
	}
	assert.Equal(t, []uint64{1, 2, 3, 4}, numbers(), "in order, each once")
	held.trim(2*size, b)
	held.add(record(5), b)
	assert.Equal(t, []uint64{1, 2}, numbers(), "what follows is read when its turn comes")
	assert.Equal(t, 2*size, b.used)
	held.trim(1, b)
	assert.Equal(t, []uint64{1}, numbers(), "one event of any size")
	held.dropTo(1, b)
	held.add(record(6), b)
	assert.Equal(t, []uint64{6}, numbers())
	b.take(12_000)
	held.add(record(7), b)
	b.Release(12_000)
	held.add(record(8), b)
	assert.Equal(t, []uint64{6}, numbers(), "there was no room")
	held.drop(b)
	assert.Zero(t, b.used)
}
