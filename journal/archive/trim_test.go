package archive_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// fromAny runs a test for archives from each layout to each layout.
func fromAny(t *testing.T, test func(t *testing.T, from, to store)) {
	t.Helper()
	pairsOf(t, test, "classic to classic", "classic to packed", "packed to classic", "packed to packed")
}

// trim removes the events of a queue before a number.
func (s store) trim(t *testing.T, id aggregate.ID, before uint64) {
	t.Helper()
	require.NoError(t, s.Journal.Internal().Raw().Trim(t.Context(), id, before))
}

// queue writes events one by one, as a publisher does.
func (s store) queue(t *testing.T, id aggregate.ID, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		s.write(t, id, n, 1)
	}
}

// requireTrimmed requires that an aggregate is sound and can be exported, and that it is trimmed
// before an event.
func (s store) requireTrimmed(t *testing.T, id aggregate.ID, before uint64) {
	t.Helper()
	head, err := s.Journal.Internal().Raw().Head(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, before, head.TruncatedBefore)
	assert.Equal(t, before-1, head.Snapshot.Number, "the snapshot of the trim")
	s.requireSound(t)
	s.export(t)
}

func TestAnImportedQueueCanBeTrimmedAgain(t *testing.T) {
	t.Parallel()
	fromAny(t, func(t *testing.T, from, to store) {
		mails := account("mails")
		from.queue(t, mails, 1, 5)
		from.trim(t, mails, 6)
		from.queue(t, mails, 6, 7)
		to.imports(t, from.export(t))
		to.queue(t, mails, 8, 10)

		to.trim(t, mails, 11)
		to.requireTrimmed(t, mails, 11)
		to.queue(t, mails, 11, 11)
		to.requireTrimmed(t, mails, 11)

		var began uint64
		loaded, err := to.Journal.Internal().Raw().Load(t.Context(), mails, func(h journal.Head, _ error) uint64 {
			began = h.Snapshot.Number
			return began
		}, func(*journal.Record) error { return nil })
		require.NoError(t, err)
		assert.EqualValues(t, 10, began, "a load begins after the removed events")
		assert.EqualValues(t, 11, loaded.Version)
	})
}

func TestAnImportKeepsTheLaterTrimOfTheJournal(t *testing.T) {
	t.Parallel()
	fromAny(t, func(t *testing.T, from, to store) {
		mails := account("mails")
		from.queue(t, mails, 1, 12)
		to.imports(t, from.export(t))
		from.trim(t, mails, 6)
		to.trim(t, mails, 11)
		from.queue(t, mails, 13, 120)

		done := to.imports(t, from.export(t))

		assert.EqualValues(t, 7, done.Present)
		to.requireTrimmed(t, mails, 11)
		assert.Len(t, to.contents(t)[mails].Events, 110)
	})
}

func TestAnImportLeavesEventsThatTheArchiveHasTrimmed(t *testing.T) {
	t.Parallel()
	fromAny(t, func(t *testing.T, from, to store) {
		mails := account("mails")
		from.queue(t, mails, 1, 5)
		to.imports(t, from.export(t))
		before := to.contents(t)
		from.trim(t, mails, 6)

		to.imports(t, from.export(t))

		assertSame(t, before, to.contents(t))
		to.requireSound(t)
	})
}
