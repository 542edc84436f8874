package groups_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// skipped returns the records of skipped events.
func (s store) skipped(t *testing.T) (records []groups.SkippedEvent) {
	t.Helper()
	for e, err := range s.Skipped(t.Context(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		records = append(records, e)
	}
	return records
}

// skippedNames returns the skipped events in the form of their payloads.
func (s store) skippedNames(t *testing.T) (names []string) {
	t.Helper()
	for _, e := range s.skipped(t) {
		names = append(names, fmt.Sprintf("%s/%d", e.Aggregate.Value, e.Number))
	}
	return names
}

func TestAnEventThatAnOperatorSkipsLeavesARecordWithTheReasonItWasParkedFor(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		config := s.quick()
		config.Failures = subscriber.Park(2)
		var got handled
		got.consume(t, config, func(payload string) bool { return payload == "x/2" })
		s.write(t, "x", 0, 3)
		s.parked(t, 1)
		s.waitApplied(t, "x", 1) // so that no member handles it again after the skip
		assert.Empty(t, s.skipped(t))

		require.NoError(t, s.Skip(t.Context(), group, account("x"), 2))

		records := s.skipped(t)
		require.Len(t, records, 1)
		assert.Equal(t, groups.SkippedEvent{
			Aggregate: account("x"), Number: 2, EventType: "deposited", At: records[0].At,
			Reason: "skipped by an operator, parked because the message was nacked without a reason (see subscriber.NackReason), 2 times",
		}, records[0])
		assert.WithinDuration(t, time.Now(), records[0].At, patience)
		s.caughtUp(t)
		assert.Equal(t, []string{"x/1", "x/3"}, got.of("x"))
		applied, err := s.Position(t.Context(), group, account("x"))
		require.NoError(t, err)
		assert.EqualValues(t, 3, applied)
	})
}

func TestAnEventThatCannotBeReadIsSkippedWithoutItsType(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	s := open(t, client, journal.Config{})
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 2)
	table := "journal"
	_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "account-0"}, "skey": &types.AttributeValueMemberS{Value: "account-x-1"},
	}})
	require.NoError(t, err)

	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))

	records := s.skipped(t)
	require.Len(t, records, 1)
	assert.Empty(t, records[0].EventType)
	assert.Equal(t, "skipped by an operator", records[0].Reason)
}

func TestAnOperatorsSkipMovesThePositionWithItsRecordOrNotAtAll(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 1))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 3)
	proxy.Inject(dynamotest.CutConnection(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

	require.ErrorIs(t, s.Skip(t.Context(), group, account("x"), 1), io.ErrUnexpectedEOF)
	applied, err := s.Position(t.Context(), group, account("x"))
	require.NoError(t, err)
	assert.Zero(t, applied)
	assert.Empty(t, s.skipped(t))

	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))
	assert.Equal(t, []string{"x/1"}, s.skippedNames(t))
}

func TestAnOperatorsSkipOutlastsTransactionsThatItMeets(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 1))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 1)
	proxy.Inject(dynamotest.Conflict(), dynamotest.On("TransactWriteItems"), dynamotest.Times(3))

	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))

	assert.Equal(t, []string{"x/1"}, s.skippedNames(t))
}

func TestSkippedEventsAreListedByShardIdAndNumber(t *testing.T) {
	t.Parallel()
	s := setup(t, 3)
	s.begin(t, time.Time{})
	var want []string
	for _, id := range []string{"x", "x-000000000000000a", "y", "a/b", strings.Repeat("i", aggregate.MaxIDBytes-len(topic)-1)} {
		s.write(t, id, 0, 12)
		for n := range 12 {
			require.NoError(t, s.Skip(t.Context(), group, account(id), uint64(n+1)))
			want = append(want, fmt.Sprintf("%s/%d", id, n+1))
		}
	}

	got := s.skipped(t)
	assert.ElementsMatch(t, want, s.skippedNames(t))
	assert.True(t, slices.IsSortedFunc(got, func(a, b groups.SkippedEvent) int {
		if shards := s.Journal.Internal().Shard(a.Aggregate) - s.Journal.Internal().Shard(b.Aggregate); shards != 0 {
			return shards
		}
		if a.Aggregate == b.Aggregate {
			return int(a.Number) - int(b.Number)
		}
		return strings.Compare(a.Aggregate.Value, b.Aggregate.Value)
	}), "%v", s.skippedNames(t))
	for _, err := range s.Skipped(t.Context(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		break // the sequence need not be read to its end
	}
}

func TestAResetAggregateForgetsWhatComesAgainAndNothingElse(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	// Keys of the third aggregate sort among the keys of the second.
	for _, id := range []string{"w", "x", "x-000000000000000a", "y"} {
		s.write(t, id, 0, 3)
		for n := range 3 {
			require.NoError(t, s.Skip(t.Context(), group, account(id), uint64(n+1)))
		}
	}

	require.NoError(t, s.ResetAggregate(t.Context(), group, account("x"), 1))

	want := append(append(expect("w", 1, 3), "x/1"), append(expect("x-000000000000000a", 1, 3), expect("y", 1, 3)...)...)
	assert.ElementsMatch(t, want, s.skippedNames(t))
}

func TestAResetAggregateHandlesWhatWasSkipped(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		config := s.quick()
		config.Failures = subscriber.Skip(2)
		var mended atomic.Bool
		var got handled
		got.consume(t, config, func(payload string) bool { return payload == "x/2" && !mended.Load() })
		s.write(t, "x", 0, 3)
		eventually(t, "all are done with", func() bool { return got.count() == 2 })
		s.caughtUp(t)
		assert.Equal(t, []string{"x/2"}, s.skippedNames(t))

		mended.Store(true)
		require.NoError(t, s.ResetAggregate(t.Context(), group, account("x"), 1))

		eventually(t, "it comes with those behind it", func() bool { return got.count() == 4 })
		assert.Equal(t, []string{"x/1", "x/3", "x/2", "x/3"}, got.of("x"))
		assert.Empty(t, s.skipped(t))
	})
}

func TestARecordOfASkippedEventIsForgotten(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 2)
	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))
	require.NoError(t, s.Skip(t.Context(), group, account("x"), 2))

	require.NoError(t, s.ForgetSkipped(t.Context(), group, account("x"), 1))

	assert.Equal(t, []string{"x/2"}, s.skippedNames(t))
	applied, err := s.Position(t.Context(), group, account("x"))
	require.NoError(t, err)
	assert.EqualValues(t, 2, applied, "no event is delivered again")
	require.ErrorIs(t, s.ForgetSkipped(t.Context(), group, account("x"), 1), groups.ErrNotSkipped)
	require.ErrorIs(t, s.ForgetSkipped(t.Context(), group, account("nobody"), 1), groups.ErrNotSkipped)
	require.ErrorAs(t, s.ForgetSkipped(t.Context(), group, aggregate.ID{}, 1), new(*aggregate.InvalidIDError))
	require.ErrorIs(t, s.ForgetSkipped(t.Context(), "nobody", account("x"), 1), groups.ErrNoGroup)
	for _, err := range s.Of("nobody", topic).Skipped(t.Context(), aggregate.ID{}, 0) {
		require.ErrorIs(t, err, groups.ErrNoGroup)
	}
}

func TestAResetAndARemovalTakeTheRecordsOfSkippedEventsWithThem(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 2)
	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))
	records := func() (n int) {
		for _, row := range s.rows(t) {
			if strings.Contains(row, " event/") {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, records())

	require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
	assert.Empty(t, s.skipped(t))
	late := s.after(t, groups.FenceTime+time.Hour)
	_, err := late.CleanUp(t.Context(), nil)
	require.NoError(t, err)
	assert.Zero(t, records())

	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))
	assert.Equal(t, []string{"x/1"}, s.skippedNames(t), "since the reset")
	require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{}))
	_, err = late.CleanUp(t.Context(), nil)
	require.NoError(t, err)
	assert.Zero(t, records())
}
