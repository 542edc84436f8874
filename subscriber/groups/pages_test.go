package groups_test

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// onDynamotest returns a group on 4 shards that owns all of them.
func onDynamotest(t *testing.T) (*dynamotest.DB, store) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	s := open(t, db.Client(), journal.Config{})
	s.owned(t)
	return db, s
}

// listMany lists aggregates without events. Every tenth aggregate is not parked.
func (s store) listMany(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("a%05d", i)
		if i%10 > 0 {
			s.park(t, id, 1, "it fails")
			continue
		}
		require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1},
			checkpoint.Behind{Aggregate: account(id), Head: 1}))
	}
}

// skipMany records events as skipped: the events 1 to each of n aggregates.
func (s store) skipMany(t *testing.T, n, each int) {
	t.Helper()
	for i := range n {
		for number := range each {
			require.NoError(t, checkpoint.New(s.Journal).PutSkipped(t.Context(), checkpoint.Group{Name: group}, checkpoint.Skipped{
				Aggregate: account(fmt.Sprintf("a%05d", i)), Number: uint64(number) + 1, At: time.Now(), Reason: "it fails", Epoch: 1,
			}))
		}
	}
}

// first returns the first n values of a sequence.
func first[T any](t *testing.T, n int, sequence iter.Seq2[T, error]) (some []T) {
	t.Helper()
	for one, err := range sequence {
		require.NoError(t, err)
		if some = append(some, one); len(some) == n {
			break
		}
	}
	return some
}

func TestAPageOfALongListCostsWhatItShows(t *testing.T) {
	t.Parallel()
	const aggregates, shards = 1200, 4
	db, s := onDynamotest(t)
	s.listMany(t, aggregates)
	s.skipMany(t, aggregates, 1)
	cost := func(do func()) float64 {
		recording := db.Record()
		defer recording.Stop()
		do()
		read, _ := recording.Units()
		return read
	}
	zero := aggregate.ID{}
	for name, test := range map[string]struct {
		page func(n int) int
		most float64 // maximum read units for 50 entries
		all  int
	}{
		"Behind":  {func(n int) int { return len(first(t, n, s.Behind(t.Context(), zero))) }, 1 + 75 + 75/40.0 + 2, aggregates},
		"Parked":  {func(n int) int { return len(first(t, n, s.Parked(t.Context(), zero))) }, 1 + 90 + 3*75/40.0 + 2, aggregates * 9 / 10},
		"Skipped": {func(n int) int { return len(first(t, n, s.Skipped(t.Context(), zero, 0))) }, 1 + 75/20.0 + 2, aggregates},
		"SelectParked, none": {func(n int) int {
			return len(first(t, n, s.SelectParked(t.Context(), groups.Selection{Reason: "no such"})))
		}, 1 + aggregates/40.0 + 5*shards, 0},
	} {
		got := 0
		read := cost(func() { got = test.page(50) })
		assert.Equal(t, min(50, test.all), got, name)
		assert.LessOrEqual(t, read, test.most, name)
		assert.Equal(t, test.all, test.page(math.MaxInt), name)
	}
	last := first(t, math.MaxInt, s.Behind(t.Context(), zero))[aggregates-100].Aggregate
	read := cost(func() { assert.Len(t, first(t, 50, s.Behind(t.Context(), last)), 50) })
	assert.LessOrEqual(t, read, 1+75+75/40.0+2, "Behind, near the end")

	read = cost(func() { assert.Len(t, first(t, math.MaxInt, s.Behind(t.Context(), zero)), aggregates) })
	assert.InDelta(t, 1+aggregates+aggregates/40.0, read, 40, "Behind, all")
}

func TestSelectParkedReadsAsItIsConsumed(t *testing.T) {
	t.Parallel()
	db, s := manyParked(t, 1000)
	recording := db.Record()
	defer recording.Stop()

	assert.Len(t, first(t, 50, s.SelectParked(t.Context(), groups.Selection{})), 50)

	read, _ := recording.Units()
	assert.LessOrEqual(t, read, 1+2*75+75/40.0+2, "the group, events and positions, the list")
}

func TestListsContinueBehindTheLastOfAPage(t *testing.T) {
	t.Parallel()
	const aggregates = 150 // more than two of the largest pages
	_, s := onDynamotest(t)
	s.listMany(t, aggregates)
	for i := range aggregates {
		s.write(t, fmt.Sprintf("a%05d", i), 0, 1)
	}
	s.skipMany(t, aggregates/3, 3)
	lists := map[string]func(after aggregate.ID) iter.Seq2[groups.BehindAggregate, error]{
		"Behind": func(after aggregate.ID) iter.Seq2[groups.BehindAggregate, error] {
			return s.Behind(t.Context(), after)
		},
		"Parked": func(after aggregate.ID) iter.Seq2[groups.BehindAggregate, error] {
			return s.Parked(t.Context(), after)
		},
	}
	for name, list := range lists {
		want := first(t, math.MaxInt, list(aggregate.ID{}))
		for _, size := range []int{1, 7, 60} {
			var got []groups.BehindAggregate
			for page := first(t, size, list(aggregate.ID{})); len(page) > 0; page = first(t, size, list(page[len(page)-1].Aggregate)) {
				got = append(got, page...)
			}
			assert.Equal(t, want, got, "%s, %d at a time", name, size)
		}
	}
	want := first(t, math.MaxInt, s.Skipped(t.Context(), aggregate.ID{}, 0))
	require.Len(t, want, aggregates)
	for _, size := range []int{1, 7, 60} {
		var got []groups.SkippedEvent
		for page := first(t, size, s.Skipped(t.Context(), aggregate.ID{}, 0)); len(page) > 0; {
			got = append(got, page...)
			last := page[len(page)-1]
			page = first(t, size, s.Skipped(t.Context(), last.Aggregate, last.Number))
		}
		assert.Equal(t, want, got, "%d at a time", size)
	}
	one := slices.IndexFunc(want, func(e groups.SkippedEvent) bool { return e.Aggregate == account("a00007") })
	assert.Equal(t, want[one:], first(t, math.MaxInt, s.Skipped(t.Context(), account("a00007"), 0)), "from its first record")
	assert.Equal(t, want[one+3:], first(t, math.MaxInt, s.Skipped(t.Context(), account("a00007"), math.MaxUint64)))
}

func TestAListContinuesBehindAnAggregateThatIsNotListedAnyMore(t *testing.T) {
	t.Parallel()
	_, s := onDynamotest(t)
	s.listMany(t, 100)
	all := first(t, math.MaxInt, s.Behind(t.Context(), aggregate.ID{}))
	gone := all[30].Aggregate
	require.NoError(t, checkpoint.New(s.Journal).UnlistBehind(t.Context(), checkpoint.Group{Name: group}, gone, checkpoint.Revision{Epoch: 1}))

	assert.Equal(t, all[31:], first(t, math.MaxInt, s.Behind(t.Context(), gone)))
}

func TestAListDoesNotContinueBehindAnAggregateOfAnotherTopic(t *testing.T) {
	t.Parallel()
	_, s := onDynamotest(t)
	s.listMany(t, 3)
	for _, after := range []aggregate.ID{{Type: "order", Value: "a"}, {Type: topic}} {
		_, err := collect(s.Behind(t.Context(), after))
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		_, err = collect(s.Parked(t.Context(), after))
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		_, err = collect(s.Skipped(t.Context(), after, 1))
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	}
}
