package groups_test

import (
	"context"
	"io"
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

	err := s.Remove(t.Context(), group, topic, groups.Removal{})

	var active *groups.ActiveError
	require.ErrorAs(t, err, &active)
	assert.Equal(t, []uint64{1}, active.Members)
	assert.Equal(t, []int{0, 1}, active.Shards)
	g, err := s.Get(t.Context(), group, topic)
	require.NoError(t, err)
	assert.False(t, g.Paused, "nothing was changed")

	require.NoError(t, sub.Close())
	require.NoError(t, s.Reset(t.Context(), group, topic, subscriber.Now(), nil))
	removed := 0
	require.NoError(t, s.Remove(t.Context(), group, topic, groups.Removal{Progress: func(rows int) { removed += rows }}))

	all, err := s.List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
	assert.Equal(t, []string{"groups group/" + topic}, s.rows(t), "only the next count of resets stays")
	require.ErrorIs(t, s.Remove(t.Context(), group, topic, groups.Removal{}), groups.ErrNoGroup)

	got.forget()
	got.consume(t, s.alone(), nil)
	eventually(t, "a group of the same name begins again", func() bool { return got.count() == 3 })
	g, err = s.Get(t.Context(), group, topic)
	require.NoError(t, err)
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

		require.NoError(t, s.Remove(t.Context(), group, topic, groups.Removal{Force: true}))

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
	s.acked(t, "x", 3)
	cut := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("BatchWriteItem"))

	require.ErrorIs(t, s.Remove(t.Context(), group, topic, groups.Removal{}), io.ErrUnexpectedEOF)
	g, err := s.Get(t.Context(), group, topic)
	require.NoError(t, err)
	assert.True(t, g.Paused, "no member handles its events")

	cut.Remove()
	require.NoError(t, s.Remove(t.Context(), group, topic, groups.Removal{}))
	assert.Len(t, s.rows(t), 1)
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
	}), dynamotest.On("BatchWriteItem"), dynamotest.Times(1))

	require.ErrorAs(t, s.Remove(t.Context(), group, topic, groups.Removal{}), new(*groups.ActiveError))

	g, err := s.Get(t.Context(), group, topic)
	require.NoError(t, err)
	assert.Len(t, g.Members, 1)
}
