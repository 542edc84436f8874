package groups_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// begin creates a group without members.
func (s store) begin(t *testing.T, start time.Time) {
	t.Helper()
	_, err := checkpoint.New(s.Journal).ChangeMembership(t.Context(), checkpoint.Key{Group: group, Topic: topic},
		checkpoint.Membership{}, checkpoint.NewMembership(s.Shards(), start))
	require.NoError(t, err)
}

// acked stores the position of the group in an aggregate.
func (s store) acked(t *testing.T, id string, number uint64) {
	t.Helper()
	require.NoError(t, checkpoint.New(s.Journal).PutPosition(t.Context(), checkpoint.Group{Name: group}, account(id), 1, number))
}

// clock is a clock that moves only when a test sets it.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

var midnight = time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }

// setupAt is setup with a clock that advances by a second with each write.
func setupAt(t *testing.T, shards int) store {
	t.Helper()
	return openAt(t, create(t, shards))
}

func openAt(t *testing.T, client journal.Client) store {
	t.Helper()
	c := &clock{at: midnight}
	s := open(t, client, journal.Config{Now: c.now})
	s.clock = c
	return s
}

func (s store) lag(t *testing.T, options groups.LagOptions) groups.GroupLag {
	t.Helper()
	lag, err := s.Lag(t.Context(), options)
	require.NoError(t, err)
	return lag
}

func (s store) estimate(t *testing.T) groups.GroupLag {
	t.Helper()
	lag, err := s.Estimate(t.Context())
	require.NoError(t, err)
	return lag
}

func TestTheLagIsWhatIsBetweenHeadsAndPositions(t *testing.T) {
	t.Parallel()
	eachLayout(t, 4, func(t *testing.T, client *dynamodb.Client) {
		s := openAt(t, client)
		s.begin(t, time.Time{})
		for n := range 3 { // a, b, c at seconds 1 to 3, 4 to 6, 7 to 9
			for _, id := range []string{"a", "b", "c"} {
				s.write(t, id, n, 1)
			}
		}
		first := func(id string, n uint64) time.Time {
			for r, err := range s.Events(t.Context(), account(id), n, n) {
				require.NoError(t, err)
				return r.OccurredAt
			}
			return time.Time{}
		}
		s.acked(t, "a", 1)
		s.acked(t, "b", 3)
		require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{
			Aggregate: account("a"), Head: 2, Parked: &checkpoint.Failure{Number: 2, At: midnight, Reason: "bad"},
		}))
		var behind []groups.BehindAggregate
		var progress [][2]int

		lag := s.lag(t, groups.LagOptions{
			Behind:   func(b groups.BehindAggregate) { behind = append(behind, b) },
			Progress: func(aggregates, shards int) { progress = append(progress, [2]int{aggregates, shards}) },
		})

		assert.Equal(t, groups.Lag{Events: 5, Aggregates: 2, Parked: 1, ParkedEvents: 2, Oldest: first("c", 1)}, lag.Lag)
		assert.Equal(t, 7*time.Second, lag.Age(first("c", 1).Add(7*time.Second)))
		assert.ElementsMatch(t, []groups.BehindAggregate{
			{Aggregate: account("a"), Next: 2, Head: 3, Parked: &groups.Parked{Failure: groups.Failure{Number: 2, At: midnight.Local(), Reason: "bad"}}},
			{Aggregate: account("c"), Next: 1, Head: 3},
		}, behind)
		require.Len(t, lag.Shards, 4)
		for number, shard := range lag.Shards {
			want := groups.ShardLag{Shard: number}
			if number == s.Journal.Internal().Shard(account("a")) {
				want.Events, want.Aggregates, want.Parked, want.ParkedEvents, want.Oldest = 2, 1, 1, 2, first("a", 2)
			}
			if number == s.Journal.Internal().Shard(account("c")) {
				want.Events, want.Aggregates, want.Oldest = want.Events+3, want.Aggregates+1, first("c", 1)
			}
			assert.Equal(t, want, shard)
		}
		assert.Equal(t, [2]int{3, 4}, progress[len(progress)-1])

		s.acked(t, "a", 3)
		s.acked(t, "c", 3)
		assert.Equal(t, groups.Lag{}, s.lag(t, groups.LagOptions{}).Lag)
		assert.Zero(t, lag.Shards[0].Age(midnight))
	})
}

func TestEventsThatWereRemovedAreNoLag(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		s := open(t, client, journal.Config{})
		s.begin(t, time.Time{})
		for _, id := range []string{"deleted", "truncated", "truncated below"} {
			s.write(t, id, 0, 5)
		}
		for _, id := range []string{"truncated", "truncated below"} {
			testjournal.Append(t, s.Journal, storage.Commit{
				Aggregate: account(id), Expected: 5, Events: []storage.Event{{Type: "deposited", Payload: []byte("{}")}},
				Snapshot: &journal.Snapshot{Number: 6, Payload: []byte("{}")},
			})
			require.NoError(t, s.Truncate(t.Context(), account(id), 4, journal.RemoveOptions{}))
		}
		s.acked(t, "truncated below", 5)
		require.NoError(t, s.Delete(t.Context(), account("deleted"), 5, journal.RemoveOptions{}))

		lag := s.lag(t, groups.LagOptions{})

		assert.EqualValues(t, 3+1, lag.Events)
		assert.Equal(t, 2, lag.Aggregates)
		assert.False(t, lag.Oldest.IsZero())
	})
}

func TestEventsBeforeTheStartOfAGroupAreNoLag(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		s := openAt(t, client)
		s.write(t, "before", 0, 3)
		s.write(t, "both", 0, 3)
		s.clock.at = s.clock.at.Add(time.Second)
		start := s.Config().Now()
		s.begin(t, start)
		assert.Zero(t, s.lag(t, groups.LagOptions{}).Events)
		assert.Zero(t, s.estimate(t).Events)

		s.write(t, "both", 3, 2)
		s.write(t, "new", 0, 1)

		for _, lag := range []groups.GroupLag{s.lag(t, groups.LagOptions{}), s.estimate(t)} {
			assert.EqualValues(t, 3, lag.Events)
			assert.Equal(t, 2, lag.Aggregates)
			assert.True(t, lag.Oldest.After(start))
			assert.False(t, lag.AtLeast)
		}
	})
}

func TestImportedEventsOfBeforeTheStartAreNoLag(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		s := openAt(t, client)
		s.write(t, "x", 0, 1)
		s.clock.at = s.clock.at.Add(time.Hour)
		s.begin(t, s.clock.at)
		imported := storage.Restoration{Head: journal.Head{Aggregate: account("imported"), Version: 3}}
		for n := range uint64(3) {
			imported.Records = append(imported.Records, &journal.Record{
				Aggregate: account("imported"), Number: n + 1, EventID: fmt.Sprint(n), EventType: "deposited", OccurredAt: at(2), CommitID: "c",
			})
		}
		_, err := s.Journal.Internal().Restore(t.Context(), imported)
		require.NoError(t, err)
		s.write(t, "x", 1, 2)
		assert.EqualValues(t, 2, s.lag(t, groups.LagOptions{}).Events)
		assert.EqualValues(t, 2, s.estimate(t).Events)
	})
}

func TestTheAgeOfALagCanBeLimited(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		s := openAt(t, client)
		s.begin(t, time.Time{})
		for _, id := range []string{"a", "b", "c"} {
			s.write(t, id, 0, 1)
		}
		lag := s.lag(t, groups.LagOptions{OldestOf: 2})
		assert.EqualValues(t, 3, lag.Events)
		assert.True(t, lag.AtLeast)
		assert.False(t, lag.Oldest.IsZero())
		lag = s.lag(t, groups.LagOptions{OldestOf: -1})
		assert.True(t, lag.AtLeast)
		assert.Zero(t, lag.Oldest)
		assert.False(t, s.lag(t, groups.LagOptions{OldestOf: 3}).AtLeast)
	})
}

func TestAnEventThatCannotBeReadIsALagOfUnknownAge(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 1)
	_, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(s.Config().Tables.Journal),
		Item: map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: storage.ShardKey(topic, 0)},
			"skey": &types.AttributeValueMemberS{Value: account("x").String() + "-1"},
		},
	})
	require.NoError(t, err)
	var corrupt []*journal.CorruptItemError

	lag := s.lag(t, groups.LagOptions{Corrupt: func(err *journal.CorruptItemError) { corrupt = append(corrupt, err) }})

	assert.EqualValues(t, 1, lag.Events)
	assert.Zero(t, lag.Oldest)
	require.Len(t, corrupt, 1)
	assert.Equal(t, account("x").String()+"-1", corrupt[0].SortKey)
}

func TestAnAggregateOfAForeignProgramWhoseIDIsTooLongDoesNotHideTheLagOfTheRest(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 1)
	long := account(strings.Repeat("x", 1_010))
	_, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(s.Config().Tables.Snapshot),
		Item: map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: storage.ShardKey(topic, 0)},
			"skey": &types.AttributeValueMemberS{Value: long.String() + "-0"},
			"aid":  &types.AttributeValueMemberS{Value: long.String()}, "seq_nr": &types.AttributeValueMemberN{Value: "0"},
			"version": &types.AttributeValueMemberN{Value: "3"},
		},
	})
	require.NoError(t, err)
	var corrupt []*journal.CorruptItemError

	lag := s.lag(t, groups.LagOptions{Corrupt: func(err *journal.CorruptItemError) { corrupt = append(corrupt, err) }})

	assert.EqualValues(t, 1, lag.Events)
	require.Len(t, corrupt, 1)
	assert.Equal(t, long, corrupt[0].Aggregate)
}

func TestAnEstimateComparesWhatIsBehindTheCursorWithThePositions(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		s := openAt(t, client)
		s.begin(t, time.Time{})
		for n := range 4 {
			s.write(t, "a", n, 1) // at seconds 1 to 4
		}
		s.write(t, "b", 0, 1)
		store, g := checkpoint.New(s.Journal), checkpoint.Group{Name: group}
		lag := s.estimate(t)
		assert.Equal(t, groups.Lag{Events: 5, Aggregates: 2, Oldest: at(1)}, lag.Lag)

		s.acked(t, "a", 2)
		assert.Equal(t, groups.Lag{Events: 3, Aggregates: 2, Oldest: at(3)}, s.estimate(t).Lag)

		s.acked(t, "b", 1)
		require.NoError(t, store.ListBehind(t.Context(), g, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{
			Aggregate: account("a"), Head: 3, Parked: &checkpoint.Failure{Number: 3, At: midnight},
		}))
		shard := checkpoint.Shard{Group: g, Topic: topic}
		require.NoError(t, store.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: at(4), Reconciled: midnight}))
		assert.Equal(t, groups.Lag{Events: 2, Aggregates: 1, Parked: 1, ParkedEvents: 2, Oldest: at(3)}, s.estimate(t).Lag)

		s.acked(t, "a", 4)
		assert.Equal(t, groups.Lag{Parked: 1}, s.estimate(t).Lag)
	})
}

func TestAnEstimateSaysWhenThereIsMore(t *testing.T) {
	t.Parallel()
	s := setupAt(t, 1)
	s.begin(t, time.Time{})
	s.write(t, "a", 0, 99)
	s.write(t, "b", 0, 99)

	lag := s.estimate(t)

	assert.EqualValues(t, 100, lag.Events)
	assert.Equal(t, 2, lag.Aggregates)
	assert.True(t, lag.AtLeast)
	assert.Equal(t, at(1), lag.Oldest)
	assert.EqualValues(t, 198, s.lag(t, groups.LagOptions{}).Events)
}

func TestAGroupThatIsUpToDateHasNoLagEitherWay(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 4, func(t *testing.T, client *dynamodb.Client) {
		s := open(t, client, journal.Config{})
		var got handled
		got.consume(t, s.quick(), nil)
		got.consume(t, s.quick(), nil)
		for n := range 20 {
			for _, id := range []string{"x", "x-", "x-05", "x!", "y"} {
				s.write(t, id, n, 1)
			}
		}
		eventually(t, "all were handled", func() bool { return got.count() == 100 })
		s.caughtUp(t)
		eventually(t, "the estimate says so too", func() bool { return s.estimate(t).Lag == groups.Lag{} })
	})
}

func TestALagCountsListedAggregatesThatAreNotParkedAsBlocked(t *testing.T) {
	t.Parallel()
	for _, aggregates := range []int{3, 130} { // an estimate reads up to 100
		s := setup(t, 1)
		s.begin(t, time.Time{})
		list := func(id string, parked, failed *checkpoint.Failure) {
			require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1},
				checkpoint.Behind{Aggregate: account(id), Head: 1, Parked: parked, Failure: failed}))
		}
		for n := range aggregates {
			s.write(t, fmt.Sprint("blocked", n), 0, 1)
			if list(fmt.Sprint("blocked", n), nil, nil); n%3 == 0 {
				list(fmt.Sprint("blocked", n), nil, &checkpoint.Failure{Number: 1, At: midnight})
			}
		}
		slow := aggregates - (aggregates+2)/3
		s.write(t, "parked", 0, 1)
		list("parked", &checkpoint.Failure{Number: 1, At: midnight}, nil)
		s.write(t, "done", 0, 1)
		s.acked(t, "done", 1)
		list("a done", nil, nil) // an aggregate that does not exist
		s.acked(t, "a done", 1)
		s.write(t, "new", 0, 1)

		for name, lag := range map[string]groups.GroupLag{"Estimate": s.estimate(t), "Lag": s.lag(t, groups.LagOptions{})} {
			assert.Equal(t, aggregates, lag.Blocked, "%s, of %d", name, aggregates)
			assert.Equal(t, 1, lag.Parked, "%s, of %d", name, aggregates)
			assert.Equal(t, aggregates, lag.Shards[0].Blocked)
			assert.Equal(t, slow, lag.Slow, "%s, of %d", name, aggregates)
		}
	}
}
