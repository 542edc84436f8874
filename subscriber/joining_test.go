package subscriber_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// A deployment starts all members at once, and each join changes one item.
func TestFiftyMembersJoinWithFewWrites(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const members = 50
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 64})
		db.Inject(dynamotest.Latency(5*time.Millisecond, 15*time.Millisecond))
		recording := db.Record()
		defer recording.Stop()
		var all sync.WaitGroup
		for range members {
			config := quick(j)
			config.Timing.LeaseDuration = time.Hour // no heartbeat is counted
			config.Timing.PollInterval, config.Timing.MaxPollInterval = time.Second, time.Second
			sub := newSubscriber(t, config)
			all.Add(1)
			go func() {
				defer all.Done()
				_, err := sub.Subscribe(t.Context(), topic)
				assert.NoError(t, err)
			}()
		}
		all.Wait()
		require.Eventually(t, func() bool {
			g, err := groups.Of(j, "group", topic).Status(t.Context())
			return err == nil && len(g.Members) == members
		}, patience, 20*time.Millisecond)

		writes := len(recording.Calls("UpdateItem", "TransactWriteItems"))
		_, units := recording.Units()
		t.Logf("%d writes, %.0f units", writes, units)
		assert.Less(t, writes, 8*members, "joins, attempts that others overtook, and the shares that members give each other")
	})
}

// A process that crashes less than a lease after it has joined evicts no one.
func TestAJoiningMemberRemovesMembersThatAreLongGone(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		members := func() []groups.Member {
			g, err := groups.Of(j, "group", topic).Status(t.Context())
			require.NoError(t, err)
			return g.Members
		}
		crashed := func(ago time.Duration) checkpoint.Member {
			return checkpoint.Member{Lease: 10 * time.Second, Heartbeat: checkpoint.NextHeartbeat(0, time.Now().Add(-ago), 10*time.Second)}
		}
		membership := checkpoint.NewMembership(1, time.Time{})
		for range 120 {
			membership, _ = membership.Join(crashed(2 * time.Hour))
		}
		membership, recent := membership.Join(crashed(time.Minute))
		_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: "group", Topic: topic}, checkpoint.Membership{}, membership)
		require.NoError(t, err)
		for _, left := range []int{72, 23, 4, 5} { // with the recent one and those that have joined
			sub, _ := subscribe(t, quick(j))
			require.NoError(t, sub.WaitJoined(t.Context()))
			assert.Len(t, members(), left)
		}
		assert.Equal(t, recent, members()[0].Number, "it may be alive")
	})
}
