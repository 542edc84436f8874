package groups_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// ledger is a store of positions that is not the checkpoint table.
type ledger struct {
	mu   sync.Mutex
	rows map[place]line
	err  error // returned by reads
}

type place struct {
	group subscriber.GroupKey
	id    aggregate.ID
}

type line struct {
	epoch, position uint64
	found           bool
}

func newLedger() *ledger { return &ledger{rows: map[place]line{}} }

func (l *ledger) Claim(_ context.Context, group subscriber.GroupKey, id aggregate.ID, epoch uint64) (uint64, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[place{group, id}]
	if row.epoch > epoch {
		return 0, false, subscriber.ErrFenced
	}
	row.epoch = epoch
	l.rows[place{group, id}] = row
	return row.position, row.found, nil
}

func (l *ledger) Advance(_ context.Context, group subscriber.GroupKey, id aggregate.ID, epoch, from, to uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if row := l.rows[place{group, id}]; row.epoch != epoch || row.position != from {
		return subscriber.ErrFenced
	}
	l.rows[place{group, id}] = line{epoch, to, true}
	return nil
}

func (l *ledger) Position(_ context.Context, group subscriber.GroupKey, id aggregate.ID) (uint64, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[place{group, id}]
	return row.position, row.found, l.err
}

// put sets a position, like an operator in that store.
func (l *ledger) put(id string, position uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := place{subscriber.GroupKey{Name: group}, account(id)}
	l.rows[at] = line{l.rows[at].epoch, position, true}
}

// parkedWithExternalPositions returns a group with external positions. It is up to date with y. It
// has parked x at the second of three events.
func parkedWithExternalPositions(t *testing.T) (store, *ledger, *handled) {
	t.Helper()
	s, l, got := setup(t, 2), newLedger(), &handled{}
	config := s.alone()
	config.Positions, config.Failures = l, subscriber.Park(1)
	got.consume(t, config, func(payload string) bool { return payload == "x/2" })
	s.write(t, "x", 0, 3)
	s.write(t, "y", 0, 1)
	s.parked(t, 1)
	eventually(t, "positions are stored", func() bool {
		x, _, _ := l.Position(t.Context(), subscriber.GroupKey{Name: group}, account("x"))
		y, _, _ := l.Position(t.Context(), subscriber.GroupKey{Name: group}, account("y"))
		return x == 1 && y == 1
	})
	return s, l, got
}

func TestOperationsThatNeedExternalPositionsAreRefused(t *testing.T) {
	t.Parallel()
	s, _, _ := parkedWithExternalPositions(t)
	before := mustGet(t, s)
	assert.True(t, before.ExternalPositions)

	for name, do := range map[string]func() error{
		"Skip":           func() error { return s.Skip(t.Context(), group, account("x"), 2) },
		"ResetAggregate": func() error { return s.ResetAggregate(t.Context(), group, account("x"), 0) },
		"Position":       func() error { _, err := s.Position(t.Context(), group, account("x")); return err },
		"WaitApplied":    func() error { return s.WaitApplied(t.Context(), group, account("x"), 1) },
		"Lag":            func() error { _, err := s.Lag(t.Context(), groups.LagOptions{}); return err },
		"Estimate":       func() error { _, err := s.Estimate(t.Context()); return err },
	} {
		require.ErrorIs(t, do(), groups.ErrExternalPositions, name)
	}

	after := mustGet(t, s)
	assert.Equal(t, before.Shards, after.Shards, "no shard has changed hands")
	assert.Empty(t, s.skipped(t))
	list := s.parked(t, 1)
	assert.EqualValues(t, 2, list[0].Next, "that of the event for which it is parked is known")
}

func TestExternalPositionsAreReadFromTheirStore(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, l, got := parkedWithExternalPositions(t)
		reading := groups.New(s.Journal, groups.WithPositions(l))
		handle := reading.Of(group, topic)

		applied, err := reading.Position(t.Context(), group, account("x"))
		require.NoError(t, err)
		assert.EqualValues(t, 1, applied)
		require.NoError(t, reading.WaitApplied(t.Context(), group, account("y"), 1))
		lag, err := handle.Lag(t.Context(), groups.LagOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 2, lag.Events)
		assert.Equal(t, 1, lag.Parked)
		estimate, err := handle.Estimate(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 2, estimate.Events)
		require.ErrorIs(t, reading.Skip(t.Context(), group, account("x"), 2), groups.ErrExternalPositions)

		l.put("x", 2) // in place of a skip
		require.NoError(t, reading.Unpark(t.Context(), group, account("x")))
		require.NoError(t, reading.WaitApplied(t.Context(), group, account("x"), 3))
		assert.Equal(t, []string{"x/1", "x/3"}, got.of("x"))
		eventually(t, "nothing is left", func() bool {
			lag, err := handle.Lag(t.Context(), groups.LagOptions{})
			return err == nil && lag.Events == 0
		})
	})
}

func TestAStoreThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	s, l, _ := parkedWithExternalPositions(t)
	l.mu.Lock()
	l.err = errors.New("the connection is gone")
	l.mu.Unlock()
	reading := groups.New(s.Journal, groups.WithPositions(l))
	handle := reading.Of(group, topic)

	_, err := reading.Position(t.Context(), group, account("x"))
	require.ErrorIs(t, err, l.err)
	_, err = handle.Lag(t.Context(), groups.LagOptions{})
	require.ErrorIs(t, err, l.err)
	_, err = collect(handle.Behind(t.Context(), aggregate.ID{}))
	require.ErrorIs(t, err, l.err)
}

func TestWherePositionsAreIsAsTheLastMemberSays(t *testing.T) {
	t.Parallel()
	s, l := setup(t, 1), newLedger()
	s.write(t, "x", 0, 1)
	reading := groups.New(s.Journal, groups.WithPositions(l))
	config := s.alone()
	config.Positions = l
	var got handled
	sub := got.consume(t, config, nil)
	eventually(t, "it is handled", func() bool { return got.count() == 1 })
	require.NoError(t, sub.Close())
	g := mustGet(t, s)
	assert.True(t, g.ExternalPositions, "also without members")
	require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
	applied, err := reading.Position(t.Context(), group, account("x"))
	require.NoError(t, err)
	assert.Zero(t, applied, "since the reset")

	got.consume(t, s.alone(), nil)
	s.caughtUp(t)
	g = mustGet(t, s)
	assert.False(t, g.ExternalPositions)
	applied, err = reading.Position(t.Context(), group, account("x"))
	require.NoError(t, err)
	assert.EqualValues(t, 1, applied, "of the table, though the store says otherwise")
}
