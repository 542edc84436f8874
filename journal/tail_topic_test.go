package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// topicTail collects the records that a journal yields, and the errors of single events.
func topicTail(t *testing.T, j *engine.Engine, since time.Time) (records []*journal.Record, errs []error) {
	t.Helper()
	for r, err := range j.Tail(t.Context(), "user-account", since) {
		if err != nil {
			assert.Nil(t, r, "an error comes without a record")
			errs = append(errs, err)
			continue
		}
		records = append(records, r)
	}
	return records, errs
}

func TestTailYieldsATopicInTheOrderOfTimeAndEachEventOnce(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	want := map[string]bool{}
	for n := range 60 {
		db.Clock().Advance(time.Duration(n%3) * time.Millisecond) // some have the same time
		id, number := user(fmt.Sprint(n%9)), n/9
		s.write(t, id, number+1, 1)
		want[fmt.Sprintf("%s/%d", id.Value, number+1)] = true
	}
	s.write(t, aggregate.ID{Type: "user", Value: "other"}, 1, 1)
	for _, pages := range []int{1_000, 3, 1} {
		db.Inject(dynamotest.SmallPages(pages))

		records, errs := topicTail(t, s.Engine, time.Time{})

		require.Empty(t, errs)
		got := map[string]bool{}
		for i, place := range places(records) {
			assert.False(t, got[place], "%s came twice", place)
			got[place] = true
			assert.False(t, i > 0 && records[i].OccurredAt.Before(records[i-1].OccurredAt), "%s is out of order", place)
		}
		assert.Equal(t, want, got, "with pages of %d", pages)
	}
}

func TestEventsOfOneCommitComeInTheOrderOfTheirNumbers(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 12)

		records, errs := topicTail(t, s.Engine, time.Time{})

		require.Empty(t, errs)
		requireNumbers(t, records, 1, 12)
	})
}

func TestTailBeginsAtTheGivenTime(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for n := range 4 {
			s.clock.advance(time.Second)
			s.write(t, user(fmt.Sprint(n)), 1, 1)
		}

		records, errs := topicTail(t, s.Engine, s.clock.now().Add(-time.Second))

		require.Empty(t, errs)
		assert.Equal(t, []string{"2/1", "3/1"}, places(records))
	})
}

func TestTailGoesOnAfterEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	failing := &wrapped{name: "a"}
	s := setup(t, journal.Config{Encodings: []journal.Encoding{failing}})
	for n := range 3 {
		s.clock.advance(time.Millisecond)
		mustAppend(t, s, storage.Commit{Aggregate: user(fmt.Sprint(n)), Events: []storage.Event{{Payload: []byte("short")}}})
	}
	s.change(t, s.Config().Tables.Journal, s.keyOf(user("0"), 1), item{s.Engine.Config.Attributes.Payload: nil})
	s.change(t, s.Config().Tables.Journal, s.keyOf(user("1"), 1), item{"encoding": text("unknown")})

	records, errs := topicTail(t, s.Engine, time.Time{})

	assert.Equal(t, []string{"2/1"}, places(records))
	require.Len(t, errs, 2)
	require.ErrorAs(t, errs[0], new(*journal.CorruptItemError))
	require.ErrorAs(t, errs[1], new(*journal.EncodingError))
	raw, errs := topicTail(t, s.Engine.Raw(), time.Time{})
	require.Len(t, errs, 1)
	assert.Equal(t, []string{"1/1", "2/1"}, places(raw), "as they are stored")
}

func TestTailEndsWithItsReaderOrItsContextOrAnInvalidType(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 3)
		count := 0
		for _, err := range s.Engine.Tail(t.Context(), "user-account", time.Time{}) {
			require.NoError(t, err)
			count++
			break
		}
		assert.Equal(t, 1, count)

		ctx, cancel := cancellable(t)
		cancel()
		for r, err := range s.Engine.Tail(ctx, "user-account", time.Time{}) {
			assert.Nil(t, r)
			require.ErrorIs(t, err, context.Canceled)
		}
		for r, err := range s.Engine.Tail(t.Context(), "", time.Time{}) {
			assert.Nil(t, r)
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		}
	})
}
