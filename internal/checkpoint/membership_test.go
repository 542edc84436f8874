package checkpoint_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

func TestMembersJoinTakeReleaseAndLeave(t *testing.T) {
	t.Parallel()
	s := setup(t, 3)
	assert.False(t, s.read(t).Exists())
	start := time.UnixMilli(1234567)
	next, first := checkpoint.NewMembership(3, start).Join(checkpoint.Member{})
	created := s.change(t, key, checkpoint.Membership{}, next.Take(first, []int{0, 1, 2}))
	assert.True(t, created.Exists())
	assert.Equal(t, created, s.read(t))
	assert.Equal(t, start, created.Start)
	assert.Equal(t, []int{0, 1, 2}, created.Of(first))
	assert.True(t, created.Owns(first, 2, 1))
	assert.False(t, created.Owns(first, 2, 2))

	next, second := created.Release(first, []int{2}).Join(checkpoint.Member{Operator: true})
	joined := s.change(t, key, created, next.Take(second, []int{2}))
	assert.Equal(t, joined, s.read(t))
	assert.Equal(t, []int{2}, joined.Of(second))
	assert.Equal(t, []uint64{1, 1, 2}, joined.Epochs)
	assert.True(t, joined.Members[second].Operator)

	left := s.change(t, key, joined, joined.Leave(first))
	assert.Equal(t, left, s.read(t))
	assert.Equal(t, []int{0, 1}, left.Free())
	assert.NotContains(t, left.Members, first)

	next, third := left.Join(checkpoint.Member{})
	assert.Greater(t, third, second)
	next, fourth := next.Leave(third).Join(checkpoint.Member{})
	assert.Greater(t, fourth, third, "no number is used twice")
	assert.Len(t, left.Members, 1, "a change does not modify the membership that it was made from")
	assert.Equal(t, []int{0, 1}, next.Release(fourth, []int{2}).Free(), "a member releases only its own shards")
}

func TestNobodyOwnsAShardAfterAReset(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	seen := s.create(t, []int{0, 1})
	seen = s.change(t, key, seen, seen.Take(1, []int{1}).Pause())
	assert.Equal(t, []uint64{1, 2}, seen.Epochs)

	seen = s.change(t, key, seen, seen.Reset(time.UnixMilli(77), time.Now()))
	assert.Equal(t, seen, s.read(t))
	assert.EqualValues(t, 1, seen.Resets)
	assert.Equal(t, time.UnixMilli(77), seen.Start)
	assert.Equal(t, []int{0, 1}, seen.Free())
	assert.Equal(t, []uint64{seen.Base, seen.Base}, seen.Epochs)
	assert.Greater(t, seen.Base, uint64(2), "no epoch comes again")
	assert.True(t, seen.Paused)
	assert.Len(t, seen.Members, 1)

	early := time.UnixMilli(-86_400_000) // events can be dated before 1970
	seen = s.change(t, key, seen, seen.Reset(early, time.Now()))
	assert.Equal(t, early, seen.Start)

	seen = s.change(t, key, seen, seen.Reset(time.Time{}, time.Now()).Resume())
	assert.Zero(t, s.read(t).Start)
	assert.False(t, s.read(t).Paused)
	assert.EqualValues(t, 3, seen.Resets)
}

func TestOfTwoChangesToOneMembershipTheFirstCounts(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	seen := s.create(t, nil, nil)
	first := s.change(t, key, seen, seen.Take(1, []int{0}))

	now, err := s.ChangeMembership(t.Context(), key, seen, seen.Take(2, []int{0}))

	require.ErrorIs(t, err, checkpoint.ErrMembershipChanged)
	assert.Equal(t, first, now, "it is told how it is")
	assert.Equal(t, first, s.read(t))
}

func TestAHeartbeatChangesNothingElseAndHindersNoChange(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	seen := s.create(t, nil, nil)

	now, err := s.Heartbeat(t.Context(), key, seen, 1, 7)
	require.NoError(t, err)
	assert.EqualValues(t, 7, now.Members[1].Heartbeat)
	assert.Zero(t, now.Members[2].Heartbeat)

	changed, err := s.ChangeMembership(t.Context(), key, seen, seen.Take(1, []int{0}))
	require.NoError(t, err, "only the heartbeat has changed")
	assert.EqualValues(t, 7, changed.Members[1].Heartbeat, "a change does not reset the heartbeat")
}

func TestAMemberThatHasSentAHeartbeatIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	seen := s.create(t, nil, nil)
	_, err := s.Heartbeat(t.Context(), key, seen, 1, 1)
	require.NoError(t, err)

	now, err := s.ChangeMembership(t.Context(), key, seen, seen.Leave(1))
	require.ErrorIs(t, err, checkpoint.ErrMembershipChanged)

	s.change(t, key, now, now.Leave(1))
	_, err = s.Heartbeat(t.Context(), key, seen, 1, 2)
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	_, err = s.Heartbeat(t.Context(), checkpoint.Key{Group: "nobody", Topic: "account"}, seen, 1, 2)
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	assert.Zero(t, s.rows(t, "nobody/account"), "a beat makes no row")
}

func TestAMemberOfARemovedGroupIsNotInALaterGroupOfThatName(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	removed := s.create(t, []int{0})
	require.NoError(t, s.RemoveMembership(t.Context(), key, removed, time.Now()))
	made := s.create(t, []int{0})
	require.Contains(t, made.Members, uint64(1), "numbers begin anew")

	_, err := s.Heartbeat(t.Context(), key, removed, 1, 1)
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	assert.False(t, removed.Same(made))
	_, err = s.Heartbeat(t.Context(), key, made, 1, 1)
	require.NoError(t, err)
}

func TestALostReplyIsNotTakenForAChangeOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.loseFirst("UpdateItem")
	s.loseFirst("TransactWriteItems")
	seen := s.create(t, []int{0})

	seen = s.change(t, key, seen, seen.Release(1, []int{0}))
	joined, number := seen.Join(checkpoint.Member{})
	seen = s.change(t, key, seen, joined)
	seen = s.change(t, key, seen, seen.Leave(number))
	assert.Equal(t, seen, s.read(t))
	_, err := s.Heartbeat(t.Context(), key, seen, 1, 1)
	require.NoError(t, err)
}

func TestManyMembersCreateAGroupOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	var made sync.WaitGroup
	for range 8 {
		made.Add(1)
		go func() {
			defer made.Done()
			var seen checkpoint.Membership
			for {
				next := seen
				if !seen.Exists() {
					next = checkpoint.NewMembership(2, time.Time{})
				}
				next, _ = next.Join(checkpoint.Member{})
				now, err := s.ChangeMembership(context.Background(), key, seen, next)
				if err == nil {
					return
				}
				seen = now // the zero value if it is not known, as after a conflict
			}
		}()
	}
	made.Wait()
	assert.Len(t, s.read(t).Members, 8)
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []checkpoint.Key{key}, keys)
}

func TestAMembershipIsModifiedWhileOthersChangeIt(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	modify := func(change func(checkpoint.Membership) checkpoint.Membership) error {
		_, err := s.ModifyMembership(t.Context(), key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return change(r), nil })
		return err
	}
	pause := func(r checkpoint.Membership) checkpoint.Membership { return r.Pause() }
	require.ErrorIs(t, modify(pause), checkpoint.ErrNoGroup)
	s.create(t)
	interfered := false
	require.NoError(t, modify(func(r checkpoint.Membership) checkpoint.Membership {
		if !interfered {
			interfered = true
			_, err := s.ChangeMembership(t.Context(), key, r, r.Reset(time.Time{}, time.Now()))
			assert.NoError(t, err)
		}
		return pause(r)
	}))
	assert.True(t, s.read(t).Paused)
	assert.EqualValues(t, 1, s.read(t).Resets)
}

func TestTheRegistryHasTheGroups(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	want := []checkpoint.Key{{Group: "a", Topic: "account"}, {Group: "a", Topic: "shop/order-1"}, {Group: "b", Topic: "account"}}
	for _, k := range want {
		s.change(t, k, checkpoint.Membership{}, checkpoint.NewMembership(1, time.Time{}))
	}
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, keys)
}

func TestACorruptMembershipIsReportedAsCorrupt(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.create(t, []int{0})
	table := s.journal.Config().Tables.Checkpoint
	one := &types.AttributeValueMemberN{Value: "1"}
	lists := func(n int) item {
		list := &types.AttributeValueMemberL{}
		for range n {
			list.Value = append(list.Value, one)
		}
		return item{"change": text("c"), "owners": list, "epochs": list}
	}
	with := func(row item, name string, value types.AttributeValue) item {
		row[name] = value
		return row
	}
	for name, row := range map[string]item{
		"nothing":                    {},
		"too few shards":             lists(1),
		"text for a count of resets": with(lists(2), "resets", text("1")),
		"a start that is none":       with(lists(2), "start_at", &types.AttributeValueMemberN{Value: "1.5"}),
		"text for a start":           with(lists(2), "start_at", text("now")),
		"a member without a number": with(lists(2), "members", &types.AttributeValueMemberM{Value: item{
			"first": &types.AttributeValueMemberM{},
		}}),
		"a member that is no map": with(lists(2), "members", &types.AttributeValueMemberM{Value: item{"1": one}}),
	} {
		s.put(t, "group/account", "shards", row)
		_, err := s.ReadMembership(t.Context(), key)
		require.ErrorIs(t, err, checkpoint.ErrCorrupt, name)
		assert.ErrorContains(t, err, "group/account", name)
		assert.ErrorContains(t, err, table, name)
	}
}

func TestAMembershipInAMissingTableIsAnError(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.proxy.Inject(dynamotest.Refuse(&types.ResourceNotFoundException{}), dynamotest.On("GetItem"))
	_, err := s.ReadMembership(t.Context(), key)
	require.ErrorIs(t, err, journal.ErrTableMissing)
}

func TestAResetKeepsThePauseAndNotTheEventThatLedToIt(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	seen := s.create(t)
	seen = s.change(t, key, seen, seen.Stop(checkpoint.Stopped{Aggregate: x, Number: 1, At: time.Now()}))
	s.change(t, key, seen, seen.Reset(time.Time{}, time.Now()))
	now := s.read(t)
	assert.True(t, now.Paused)
	assert.Nil(t, now.Stopped)
}
