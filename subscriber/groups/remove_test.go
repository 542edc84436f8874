package groups_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAGroupWithMembersIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	var got handled
	sub := got.consume(t, s.alone(), nil)
	s.write(t, "x", 0, 3)
	eventually(t, "all were handled", func() bool { return got.count() == 3 })

	err := s.Remove(t.Context(), groups.RemoveOptions{})

	var active *groups.ActiveError
	require.ErrorAs(t, err, &active)
	assert.Equal(t, []uint64{1}, active.Members)
	assert.Equal(t, []int{0, 1}, active.Shards)
	g := mustGet(t, s)
	assert.False(t, g.Paused, "nothing was changed")

	require.NoError(t, sub.Close())
	require.NoError(t, s.Reset(t.Context(), subscriber.Now(), nil))
	require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{}))

	all, err := s.List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
	assert.NotEmpty(t, s.rowsOf(t, "0"), "they fence transactions that are late")
	require.ErrorIs(t, s.Remove(t.Context(), groups.RemoveOptions{}), groups.ErrNoGroup)

	got.forget()
	got.consume(t, s.alone(), nil)
	eventually(t, "a group of the same name begins again", func() bool { return got.count() == 3 })
	g = mustGet(t, s)
	assert.EqualValues(t, 2, g.Resets, "which no former member writes to")
	assert.False(t, g.Paused)
	all, err = s.List(t.Context())
	require.NoError(t, err)
	assert.Len(t, all, 1)
}

func TestAForcedRemovalHasLiveMembersBeginAnew(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		s := open(t, client, journal.Config{})
		var got handled
		got.consume(t, s.quick(), nil)
		got.consume(t, s.quick(), nil)
		s.write(t, "x", 0, 3)
		eventually(t, "all were handled", func() bool { return got.count() == 3 })
		s.caughtUp(t)

		require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{Force: true}))

		eventually(t, "they come again", func() bool { return got.count() == 6 })
		s.caughtUp(t)
		assert.Equal(t, append(expect("x", 1, 3), expect("x", 1, 3)...), got.of("x"))
	})
}

func TestARemovalThatEndsEarlyIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 2))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	s.begin(t, time.Time{})
	cut := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("TransactWriteItems"))

	require.ErrorIs(t, s.Remove(t.Context(), groups.RemoveOptions{}), io.ErrUnexpectedEOF)
	g := mustGet(t, s)
	assert.True(t, g.Paused, "no member handles its events")

	cut.Remove()
	require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{}))
	assert.Len(t, s.rows(t), 1)
}

func TestTheRowsOfARemovedGroupAreCleanedUpAfterTheFenceTime(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.begin(t, time.Time{})
	s.acked(t, "x", 3)
	require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{}))
	until, err := s.CleanUp(t.Context(), func(int) { assert.Fail(t, "a row was deleted") })
	require.NoError(t, err)
	assert.True(t, until.After(time.Now().Add(groups.FenceTime-time.Minute)))
	late, removed := s.after(t, groups.FenceTime+time.Hour), 0

	until, err = late.CleanUp(t.Context(), func(rows int) { removed += rows })

	require.NoError(t, err)
	assert.Zero(t, until)
	assert.Equal(t, 1, removed)
	assert.Equal(t, []string{"groups group/" + topic}, s.rows(t), "only the next count of resets stays")
	_, err = late.CleanUp(t.Context(), nil)
	require.NoError(t, err, "again")
}

// A read model that is built again from time to time has a group for each generation.
func TestARemovalCleansUpAfterEarlierRemovals(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 2))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	rows := checkpoint.New(s.Journal)
	for _, name := range []string{"totals.1", "totals.2"} {
		_, err := rows.ChangeMembership(t.Context(), checkpoint.Key{Group: name, Topic: topic}, checkpoint.Membership{}, checkpoint.NewMembership(2, time.Time{}))
		require.NoError(t, err)
		_, _, err = rows.StorePosition(t.Context(), checkpoint.Group{Name: name}, account("x"), 1, 3)
		require.NoError(t, err)
	}
	require.NoError(t, s.Of("totals.1", topic).Remove(t.Context(), groups.RemoveOptions{}))
	late, removed := s.after(t, groups.FenceTime+time.Hour), 0
	cut := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("BatchWriteItem"))

	require.ErrorIs(t, late.Of("totals.2", topic).Remove(t.Context(), groups.RemoveOptions{}), groups.ErrLeftovers)
	_, err := s.Of("totals.2", topic).Status(t.Context())
	require.ErrorIs(t, err, groups.ErrNoGroup, "it was removed")

	cut.Remove()
	s.begin(t, time.Time{})
	require.NoError(t, late.Remove(t.Context(), groups.RemoveOptions{Progress: func(n int) { removed += n }}))
	assert.Equal(t, 1, removed)
	var left []string
	for _, row := range s.rows(t) {
		if strings.Contains(row, " position/") {
			left = append(left, row)
		}
	}
	require.Len(t, left, 1)
	assert.Contains(t, left[0], "totals.2/", "which was removed a moment ago")
}

func TestARemovalCleansUpAfterTheOthersIfItCannotAfterOneGroup(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 2))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	rows := checkpoint.New(s.Journal)
	for _, name := range []string{"totals.1", "totals.2", "totals.3"} {
		_, err := rows.ChangeMembership(t.Context(), checkpoint.Key{Group: name, Topic: topic}, checkpoint.Membership{}, checkpoint.NewMembership(2, time.Time{}))
		require.NoError(t, err)
		_, _, err = rows.StorePosition(t.Context(), checkpoint.Group{Name: name}, account("x"), 1, 3)
		require.NoError(t, err)
		require.NoError(t, s.Of(name, topic).Remove(t.Context(), groups.RemoveOptions{}))
	}
	s.begin(t, time.Time{})
	proxy.Inject(dynamotest.CutConnection(), dynamotest.On("BatchWriteItem"), dynamotest.Times(1))
	removed := 0

	err := s.after(t, groups.FenceTime+time.Hour).Remove(t.Context(), groups.RemoveOptions{Progress: func(n int) { removed += n }})

	require.ErrorIs(t, err, groups.ErrLeftovers)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, 2, removed)
}

func TestAGroupThatIsMadeAgainCleansUpAfterTheFormerOne(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.begin(t, time.Time{})
	s.acked(t, "x", 3)
	require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{}))
	s.begin(t, time.Time{})
	require.Len(t, s.rowsOf(t, "0"), 1)

	until, err := s.after(t, groups.FenceTime+time.Hour).CleanUp(t.Context(), nil)

	require.NoError(t, err)
	assert.Zero(t, until)
	assert.Empty(t, s.rowsOf(t, "0"))
}

func TestAMemberThatJoinsDuringARemovalEndsIt(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 1))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	s.begin(t, time.Time{})
	s.acked(t, "x", 3)
	store, k := checkpoint.New(s.Journal), checkpoint.Key{Group: group, Topic: topic}
	proxy.Inject(dynamotest.Pause(func(context.Context) {
		_, err := store.ModifyMembership(context.Background(), k, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			r, _ = r.Join(checkpoint.Member{})
			return r, nil
		})
		assert.NoError(t, err)
	}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

	require.ErrorAs(t, s.Remove(t.Context(), groups.RemoveOptions{}), new(*groups.ActiveError))

	g := mustGet(t, s)
	assert.Len(t, g.Members, 1)
}
