package command_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// member is a subscription whose messages a test handles.
type member struct {
	*subscriber.Subscriber
	messages <-chan *message.Message
}

// join returns a member of group audit that subscribes to accounts. It parks at the first failure.
// Its lease is as long as the test may take, so that each message comes once.
func join(t *testing.T, j *journal.Journal) member {
	t.Helper()
	return joinWith(t, j, subscriber.Park(1), patience)
}

// joinWith returns a member with another policy and lease. A member with a short lease notices soon
// what an operator does. On a busy machine it may lose the lease and receive messages again.
func joinWith(t *testing.T, j *journal.Journal, failures subscriber.FailurePolicy, lease time.Duration) member {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "audit", Failures: failures, Timing: subscriber.Timing{
			PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond, CommitInterval: 10 * time.Millisecond,
			LeaseDuration: lease, BehindAfter: 10 * time.Millisecond,
		},
		NackResendSleep: time.Millisecond, CloseTimeout: patience,
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	return member{sub, messages}
}

// handleAll acks all messages that succeed, and nacks others, until the subscriber is closed.
func (m member) handleAll(succeeds func(*message.Message) bool) {
	go func() {
		for msg := range m.messages {
			if succeeds(msg) {
				msg.Ack()
			} else {
				msg.Nack()
			}
		}
	}()
}

// handle acks n messages.
func (m member) handle(t *testing.T, n int) {
	t.Helper()
	for range n {
		m.next(t).Ack()
	}
}

func (m member) next(t *testing.T) *message.Message {
	t.Helper()
	select {
	case msg, open := <-m.messages:
		require.True(t, open, "the subscriber must be open")
		return msg
	case <-time.After(patience):
		require.FailNow(t, "no message came")
		return nil
	}
}

// setupGroup is setupTables with a group that has handled the three events of one account. It has
// not handled the two events of another account, which were written after all members had left.
func setupGroup(t *testing.T) (*shell, *journal.Journal) {
	t.Helper()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 3)
	m := join(t, j)
	m.handle(t, 3)
	require.NoError(t, m.Close())
	deposits(t, j, account("2"), 1, 2)
	return s, j
}

// setupParked returns a group that has parked account 1 at its second event of three.
func setupParked(t *testing.T) (*shell, *journal.Journal) {
	t.Helper()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 3)
	m := join(t, j)
	m.handle(t, 1)
	m.next(t).Nack()
	require.Eventually(t, func() bool {
		parked, err := parkedOf(t, j)
		return err == nil && parked == 1
	}, patience, 5*time.Millisecond, "the account must be parked")
	require.NoError(t, m.Close())
	return s, j
}

// parkedOf returns the number of aggregates that the group audit has parked.
func parkedOf(t *testing.T, j *journal.Journal) (n int, err error) {
	t.Helper()
	for _, err := range groups.Of(j, "audit", "account").Parked(t.Context(), aggregate.ID{}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestGroupsAreListedWithTheirLag(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	var waiting time.Time // the time of the first event that is not handled
	for r, err := range j.Events(t.Context(), account("2"), 1, 1) {
		require.NoError(t, err)
		waiting = r.OccurredAt
	}
	s.env.Now = func() time.Time { return waiting.Add(time.Hour + time.Second) }

	for _, args := range [][]string{{"groups"}, {"groups", "audit"}, {"groups", "--exact"}} {
		rows := cells(t, s.ok(t, args...))
		require.Len(t, rows, 1)
		assert.Regexp(t, `^1h0m`, rows[0]["AGE"])
		delete(rows[0], "AGE")
		assert.Equal(t, map[string]string{
			"GROUP": "audit", "TOPIC": "account", "STATE": "idle", "MEMBERS": "0", "SHARDS": "0/4", "LAG": "2", "BEHIND": "1", "PARKED": "0", "SKIPPED": "0",
		}, rows[0])
	}
	objects := lines(t, s.ok(t, "groups", "--json"))
	require.Len(t, objects, 1)
	assert.Equal(t, "group", objects[0]["kind"])
	assert.InDelta(t, 2, objects[0]["events"], 0)
	assert.Greater(t, objects[0]["seconds"], 3600.0)
	assert.Equal(t, false, objects[0]["at_least"])
}

func TestAGroupIsShownWithItsShards(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)

	head, shards, _ := strings.Cut(s.ok(t, "groups", "audit", "account", "--exact"), "\n\n")
	assert.Regexp(t, `(?m)^lag +2 events of 1 aggregate$`, head)
	assert.Regexp(t, `(?m)^began at +the beginning$`, head)
	rows := cells(t, shards)
	require.Len(t, rows, 4)
	for n, row := range rows {
		assert.Equal(t, storage.ShardKey("account", n), row["SHARD"])
		want := "0"
		if n == j.Internal().Shard(account("2")) {
			want = "2"
		}
		assert.Equal(t, want, row["LAG"])
	}
	objects := lines(t, s.ok(t, "groups", "audit", "account", "--json"))
	require.Len(t, objects, 5)
	assert.Equal(t, "group_shard", objects[4]["kind"])
	assert.InDelta(t, 3, objects[4]["shard"], 0)
}

func TestALagOfOneEventIsShownInTheSingular(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	s.ok(t, "group", "skip", "audit", "account", "2", "1", "--yes")

	head, _, _ := strings.Cut(s.ok(t, "groups", "audit", "account", "--exact"), "\n\n")
	assert.Regexp(t, `(?m)^lag +1 event of 1 aggregate$`, head)
}

func TestOfAGroupFarBehindTheLagIsAnEstimateUnlessItIsToBeExact(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	for n := range 5 {
		deposits(t, j, account("3"), n*90+1, (n+1)*90)
	}

	assert.Regexp(t, `^\d+\+$`, cells(t, s.ok(t, "groups"))[0]["LAG"])
	assert.Equal(t, true, lines(t, s.ok(t, "groups", "--json"))[0]["at_least"])
	assert.Equal(t, "452", cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"])
	o := s.run(t, "groups", "--exact", "--progress")
	assert.Regexp(t, `^audit on account: \d aggregates?, \d of 4 shards\n`, o.err)
}

func TestMembersAtWorkAreShown(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	m := join(t, j)
	m.handle(t, 2)
	require.Eventually(t, func() bool {
		row := cells(t, s.ok(t, "groups"))[0]
		return row["STATE"] == "active" && row["MEMBERS"] == "1" && row["SHARDS"] == "4/4"
	}, patience, 5*time.Millisecond)
}

func TestTheOwnerOfAShardIsShownWithHostAndProcess(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	m := join(t, j)
	m.handle(t, 2)

	_, shards, _ := strings.Cut(s.ok(t, "groups", "audit", "account"), "\n\n")
	assert.Regexp(t, fmt.Sprintf("^2 .*/%d$", os.Getpid()), cells(t, shards)[0]["OWNER"])
	assert.Regexp(t, fmt.Sprintf("/%d$", os.Getpid()), lines(t, s.ok(t, "groups", "audit", "account", "--json"))[1]["owner_name"])
}

func TestAGroupThatWorksInBurstsMissesNoMember(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	ended, due := time.Now().Add(-time.Minute).Truncate(time.Millisecond), time.Now().Add(time.Hour).Truncate(time.Millisecond)
	c := checkpoint.New(j)
	_, err := c.ModifyMembership(t.Context(), checkpoint.Key{Group: "audit", Topic: "account"}, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		r = r.Leave(slices.Collect(maps.Keys(r.Members))...)
		r.Burst = ended
		return r, nil
	})
	require.NoError(t, err)
	shard := checkpoint.Shard{Group: checkpoint.Group{Name: "audit"}, Topic: "account", Number: 2}
	require.NoError(t, c.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 9, Due: due}))
	assert.Equal(t, "bursts", cells(t, s.ok(t, "groups"))[0]["STATE"])
	line := lines(t, s.ok(t, "groups", "audit", "account", "--json"))[0]
	assert.Equal(t, output.Time(ended), line["last_burst"])
	assert.Equal(t, output.Time(due), line["next_due"])
	assert.Contains(t, s.ok(t, "groups", "audit", "account"), "last burst")
}

func TestMembersThatCrashedAreMarkedAsDead(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	const lease = 10 * time.Second
	now := time.Now()
	join := func(name string, ago time.Duration, shards ...int) {
		_, err := checkpoint.New(j).ModifyMembership(t.Context(), checkpoint.Key{Group: "audit", Topic: "account"}, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			r, number := r.Join(checkpoint.Member{Name: name, Lease: lease, Heartbeat: checkpoint.NextHeartbeat(0, now.Add(-ago), lease)})
			return r.Take(number, shards), nil
		})
		require.NoError(t, err)
	}

	join("crashed/1", 12*time.Second, 0, 1, 2, 3)
	row := cells(t, s.ok(t, "groups"))[0]
	assert.Equal(t, "dead", row["STATE"])
	assert.Equal(t, "1 (1 dead)", row["MEMBERS"])

	join("alive/2", 0, 3)
	row = cells(t, s.ok(t, "groups"))[0]
	assert.Equal(t, "active", row["STATE"])
	assert.Equal(t, "2 (1 dead)", row["MEMBERS"])
	assert.InDelta(t, 1, lines(t, s.ok(t, "groups", "--json"))[0]["dead"], 0)
	head, shards, _ := strings.Cut(s.ok(t, "groups", "audit", "account"), "\n\n")
	assert.Regexp(t, `(?m)^members +2 \(1 dead\)$`, head)
	assert.Equal(t, "2 crashed/1 (dead)", cells(t, shards)[0]["OWNER"])
	assert.Equal(t, "3 alive/2", cells(t, shards)[3]["OWNER"])
	objects := lines(t, s.ok(t, "groups", "audit", "account", "--json"))
	assert.Equal(t, true, objects[1]["owner_dead"])
	assert.NotContains(t, objects[4], "owner_dead")
}

func TestAnUnknownGroupIsAnError(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	for _, line := range []string{
		"groups nobody", "groups nobody account", "group pause nobody account", "group resume nobody account",
		"group reset nobody account --to now --yes", "group remove nobody account --yes", "group cleanup nobody account",
		"group parked nobody account", "group skipped nobody account", "group forget-skipped nobody account 1 1", "group unpark nobody account 1", "group skip nobody account 1 1",
		"group catch-up nobody account", "group unpark nobody account --all", "group skip nobody account --all --yes", "group reconcile nobody account",
	} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		assert.Contains(t, o.err, "`millrace groups` lists all groups", line)
		assert.Empty(t, o.out, line)
	}
}

func TestWhereThereAreNoGroupsThatIsSaid(t *testing.T) {
	t.Parallel()
	o := setupTables(t).run(t, "groups")
	assert.Equal(t, command.ExitOK, o.code)
	assert.Empty(t, o.out)
	assert.Contains(t, o.err, "No consumer groups")
}

func TestAGroupIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	joinWith(t, j, subscriber.Park(1), time.Second).handleAll(func(*message.Message) bool { return true })
	lag := func() string { return cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"] }
	require.Eventually(t, func() bool { return lag() == "0" }, patience, 5*time.Millisecond, "all events must be handled")

	assert.Regexp(t, `(?m)^state +paused$`, s.ok(t, "group", "pause", "audit", "account", "--wait"))
	deposits(t, j, account("2"), 3, 3)
	row := cells(t, s.ok(t, "groups", "--exact"))[0]
	assert.Equal(t, "paused", row["STATE"])
	assert.Equal(t, "1", row["LAG"])
	assert.Equal(t, "0/4", row["SHARDS"], "nothing is out for handling")

	assert.NotContains(t, s.ok(t, "group", "resume", "audit", "account"), "paused")
	require.Eventually(t, func() bool { return lag() == "0" }, patience, 5*time.Millisecond, "the event must be handled")
}

func TestAWaitThatIsInterruptedSaysForWhomItWas(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	s := setup(t)
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return db.Client(), nil }
	j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
	require.NoError(t, err)
	deposits(t, j, account("1"), 1, 1)
	held := join(t, j).next(t) // being handled
	defer held.Ack()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var looks atomic.Int64
	proxy := dynamotest.NewProxy(t, db.Client()) // the command's alone
	proxy.Inject(dynamotest.Pause(func(context.Context) {
		g, err := groups.Of(j, "audit", "account").Status(t.Context())
		if assert.NoError(t, err) && g.Paused && looks.Add(1) == 3 {
			interrupt() // the wait has read the group more than once
		}
	}), dynamotest.On("GetItem"), dynamotest.Table("checkpoint"))
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return proxy.Client(), nil }

	o := s.runWith(ctx, "group", "pause", "audit", "account", "--wait")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "The group stays paused.")
	assert.Contains(t, o.err, "consumer group is active: members [1]")
}

func TestAResetBeginsAgain(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)

	out := s.ok(t, "group", "reset", "audit", "account", "--to", "beginning", "--yes")
	assert.Regexp(t, `(?m)^resets +1$`, out)
	assert.Regexp(t, `(?m)^began at +the beginning$`, out)
	assert.Equal(t, "5", cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"])
	began := time.Now()
	s.ok(t, "group", "reset", "audit", "account", "--to", "now", "--yes")
	start, err := time.Parse(time.RFC3339, lines(t, s.ok(t, "groups", "--json"))[0]["start"].(string))
	require.NoError(t, err)
	assert.WithinRange(t, start, began.Add(-3*time.Second), time.Now(), "Now begins 2 seconds early")
	out = s.ok(t, "group", "reset", "audit", "account", "--to", "2025-06-01T00:00:00Z", "--yes")
	assert.Regexp(t, `(?m)^began at +2025-06-01T00:00:00\.000Z$`, out)
	join(t, j).handle(t, 5)
	assert.Regexp(t, `^Cleaned up after group audit on account\. 0 old rows deleted\. Old rows of this group stay until 20\d\d-`, s.ok(t, "group", "cleanup", "audit", "account"))
	assert.Regexp(t, `(?m)^old rows until +20\d\d-`, s.ok(t, "groups", "audit", "account"))
}

func TestAGroupReconcilesOnDemand(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	reconcile := func(flags ...string) outcome {
		return s.run(t, append([]string{"group", "reconcile", "audit", "account"}, flags...)...)
	}
	assert.Equal(t, outcome{out: "group audit reconciles 4 shards of account: all compared\n"}, reconcile("--status"))
	want := outcome{
		out: "group audit reconciles 4 shards of account: 4 left to compare\n", err: "The group has no members. Members compare when they start.\n",
	}
	assert.Equal(t, want, reconcile())
	assert.Equal(t, want, reconcile("--status"))
	assert.Equal(t, []map[string]any{{"kind": "reconciling", "group": "audit", "topic": "account", "shards": 4.0, "left": 4.0}}, lines(t, reconcile("--json").out))
	g, err := groups.Of(j, "audit", "account").Status(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 3, g.Shards[0].Epoch, "the member's, and one for each reconciliation")
}

func TestAReconciliationIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	s.stopClock()
	var out, log bytes.Buffer
	env := s.env
	env.Out = &out
	env.Err = writer(func(p []byte) (int, error) {
		if strings.Contains(string(p), "left to compare") {
			compare(t, j)
		}
		return log.Write(p)
	})
	code := command.Run(t.Context(), []string{"group", "reconcile", "audit", "account", "--wait", "--progress"}, env)
	assert.Equal(t, command.ExitOK, code, &log)
	assert.Equal(t, "group audit reconciles 4 shards of account: all compared\n", out.String())
	assert.Equal(t, "The group has no members. Members compare when they start.\n4 of 4 shards left to compare, after 0s\n", log.String())
	assert.Equal(t, out.String(), s.ok(t, "group", "reconcile", "audit", "account", "--status", "--wait"))
}

// compare starts a member that reconciles often, and acks all messages.
func compare(t *testing.T, j *journal.Journal) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "audit", Timing: subscriber.Timing{
			ReconcileInterval: 100 * time.Millisecond, LeaseDuration: time.Second,
			PollInterval: 5 * time.Millisecond, CommitInterval: 10 * time.Millisecond,
		},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	member{sub, messages}.handleAll(func(*message.Message) bool { return true })
}

// writer is a function that receives the output of a command.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestAWaitForAReconciliationThatIsInterruptedSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	s.ok(t, "group", "reconcile", "audit", "account")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	proxy := dynamotest.NewProxy(t, s.client)
	proxy.Inject(dynamotest.Pause(func(context.Context) { interrupt() }), dynamotest.On("BatchGetItem"), dynamotest.After(2))
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return proxy.Client(), nil }
	o := s.runWith(ctx, "group", "reconcile", "audit", "account", "--status", "--wait")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "4 shards are left to compare. Members continue with them; --status --wait waits again.\nmillrace: interrupted\n")
	assert.Empty(t, o.out)
}

func TestAGroupIsRemoved(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	assert.Regexp(t, `^Removed group audit on account\. 0 old rows deleted\. Old rows of this group stay until 20\S+Z\.\n$`, s.ok(t, "group", "remove", "audit", "account", "--yes"))
	assert.Empty(t, s.ok(t, "groups"))
}

func TestARemovalCountsTheRowsThatItDeletes(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, j := setupGroup(t)
		s.ok(t, "group", "remove", "audit", "account", "--yes")
		time.Sleep(groups.FenceTime + time.Hour)
		begins(t, j, "totals")
		out := s.ok(t, "group", "remove", "totals", "account", "--yes", "--force", "--json")
		assert.Positive(t, lines(t, out)[0]["rows"], "rows of audit")
	})
}

func TestAGroupWithMembersIsRemovedOnlyByForce(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	m := join(t, j)
	m.handle(t, 2)

	o := s.run(t, "group", "remove", "audit", "account", "--yes")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "members [2]")
	assert.Contains(t, o.err, "while another member runs, or remove the group with --force")
	assert.Equal(t, 1, strings.Count(o.err, "if they have crashed"))
	s.ok(t, "group", "remove", "audit", "account", "--yes", "--force")
}

func TestWhatCannotBeUndoneIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"group reset audit account --to beginning", "group remove audit account", "group reset-aggregate audit account 1 0",
	} {
		s, j := setupGroup(t)
		unchanged := func() {
			g, err := groups.Of(j, "audit", "account").Status(t.Context())
			require.NoError(t, err)
			assert.Zero(t, g.Resets, line)
			lag, err := groups.Of(j, "audit", "account").Lag(t.Context(), groups.LagOptions{})
			require.NoError(t, err)
			assert.EqualValues(t, 2, lag.Events, line)
		}

		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitUsage, o.code, "the command cannot ask")
		assert.Contains(t, o.err, "confirm it with --yes")
		unchanged()
		s.env.InTerminal, s.env.In = true, strings.NewReader("yes\n")
		o = s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code)
		assert.Contains(t, o.err, "Type audit to continue: ")
		assert.Contains(t, o.err, "nothing was done")
		unchanged()
		s.env.In = strings.NewReader("audit\n")
		s.ok(t, strings.Fields(line)...)
	}
}

func TestWhereNothingIsBehindTheListsSaySo(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	for list, nothing := range map[string]string{
		"behind":  "Group audit on account lists no blocked or parked aggregate. Aggregates that are blocked by the newest events of their shard are not listed: see --all.\n",
		"parked":  "Group audit on account has parked no aggregate.\n",
		"skipped": "Group audit on account has skipped no event.\n",
	} {
		assert.Equal(t, outcome{err: nothing}, s.run(t, "group", list, "audit", "account"))
		assert.Equal(t, outcome{}, s.run(t, "group", list, "audit", "account", "--json"), "a program counts lines")
	}
}

func TestAllThatIsNotHandledIsListedWithTheFlagAll(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)
	deposits(t, j, account("2"), 1, 2) // no member handles them
	listed := func(flags ...string) map[string]string {
		next := map[string]string{}
		for _, row := range cells(t, s.ok(t, append([]string{"group", "behind", "audit", "account"}, flags...)...)) {
			next[row["AGGREGATE"]] = row["NEXT"]
		}
		return next
	}
	assert.Equal(t, map[string]string{"1": "2"}, listed())
	assert.Equal(t, map[string]string{"1": "2", "2": "1"}, listed("--all"))
}

func TestParkedAggregatesAreListedAndTriedAgain(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)

	rows := cells(t, s.ok(t, "group", "parked", "audit", "account"))
	require.Len(t, rows, 1)
	assert.Equal(t, "1", rows[0]["AGGREGATE"])
	assert.Equal(t, "2", rows[0]["NEXT"])
	assert.NotEmpty(t, rows[0]["REASON"])
	objects := lines(t, s.ok(t, "group", "behind", "audit", "account", "--json"))
	require.Len(t, objects, 1)
	assert.InDelta(t, 2, objects[0]["failed"], 0)
	assert.Equal(t, "1", cells(t, s.ok(t, "groups", "--exact"))[0]["PARKED"])

	assert.Equal(t, "unparked account 1 of group audit\n", s.ok(t, "group", "unpark", "audit", "account", "1"))
	assert.Empty(t, s.ok(t, "group", "parked", "audit", "account"))
	o := s.run(t, "group", "unpark", "audit", "account", "1")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "aggregate is not parked")
	join(t, j).handle(t, 2)
}

func TestASlowHandlerIsNotListedAsAFailure(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)
	deposits(t, j, account("2"), 1, 2)
	require.NoError(t, checkpoint.New(j).ListBehind(t.Context(), checkpoint.Group{Name: "audit"}, checkpoint.Revision{Epoch: 1},
		checkpoint.Behind{Aggregate: account("2"), Head: 2}))

	assert.Regexp(t, `(?m)^2 +1 +2 +slow +- +- *$`, s.ok(t, "group", "behind", "audit", "account"))
	assert.Regexp(t, `(?m)^2 +1 +2 +waiting +- +- *$`, s.ok(t, "group", "behind", "audit", "account", "--all"))
}

func TestGroupsShowTheirSkippedEvents(t *testing.T) {
	t.Parallel()
	s, _ := setupParked(t)
	s.ok(t, "group", "skip", "audit", "account", "1", "2")
	assert.Equal(t, "1", cells(t, s.ok(t, "groups"))[0]["SKIPPED"])
	assert.Regexp(t, `(?m)^skipped +1$`, s.ok(t, "groups", "audit", "account"))
	assert.InDelta(t, 1, lines(t, s.ok(t, "groups", "--json"))[0]["skipped"], 0)
}

func TestABlockedAggregateIsListedWithTheAttemptThatFailed(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)
	deposits(t, j, account("2"), 1, 2)
	at := time.UnixMilli(1_700_000_000_000)
	require.NoError(t, checkpoint.New(j).ListBehind(t.Context(), checkpoint.Group{Name: "audit"}, checkpoint.Revision{Epoch: 1},
		checkpoint.Behind{Aggregate: account("2"), Head: 2, Failure: &checkpoint.Failure{Number: 1, At: at, Reason: "the card was declined, 3 times"}}))

	for _, flags := range [][]string{nil, {"--all"}} {
		behind := append([]string{"group", "behind", "audit", "account"}, flags...)
		text := s.ok(t, behind...)
		assert.Regexp(t, `(?m)^AGGREGATE +NEXT +HEAD +STATE +FAILED AT +PARKED AT +REASON$`, text)
		assert.Regexp(t, `(?m)^1 +2 +3 +parked +- +2\S+Z +the message was nacked`, text)
		assert.Regexp(t, `(?m)^2 +1 +2 +failed +`+output.Time(at)+` +- +the card was declined, 3 times$`, text)
		for _, object := range lines(t, s.ok(t, append(behind, "--json")...)) {
			if _, parked := object["parked_at"]; !parked {
				assert.Equal(t, map[string]any{
					"kind": "behind", "group": "audit", "aggregate": map[string]any{"type": "account", "value": "2"}, "next": 1.0, "head": 2.0, "state": "failed",
					"failed_at": output.Time(at), "failed": 1.0, "reason": "the card was declined, 3 times",
				}, object)
			}
		}
	}
	assert.Len(t, cells(t, s.ok(t, "group", "parked", "audit", "account")), 1)
}

// setupManyParked returns a group that has parked the accounts 1 to 3 at their first events.
func setupManyParked(t *testing.T) (*shell, *journal.Journal) {
	t.Helper()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	for n := range 3 {
		deposits(t, j, account(strconv.Itoa(n+1)), 1, 2)
	}
	m := join(t, j)
	for range 3 {
		m.next(t).Nack()
	}
	require.Eventually(t, func() bool {
		parked, err := parkedOf(t, j)
		return err == nil && parked == 3
	}, patience, 5*time.Millisecond, "the accounts must be parked")
	require.NoError(t, m.Close())
	return s, j
}

func TestParkedAggregatesAreListedByReasonAndType(t *testing.T) {
	t.Parallel()
	s, _ := setupManyParked(t)
	parked := func(flags ...string) string {
		return s.ok(t, append([]string{"group", "parked", "audit", "account"}, flags...)...)
	}
	rows := cells(t, parked("--reason", "nacked", "--type", "account.deposited.v1"))
	require.Len(t, rows, 3)
	assert.Equal(t, "account.deposited.v1", rows[0]["TYPE"])
	assert.Equal(t, "account.deposited.v1", lines(t, parked("--json"))[0]["type"])
	assert.Empty(t, parked("--reason", "no such reason"))
	o := s.run(t, "group", "parked", "audit", "account", "--type", "no.such.type")
	assert.Equal(t, outcome{err: "Group audit on account has parked no aggregate that --reason and --type select.\n"}, o)
}

func TestAllParkedAggregatesAreTriedAgain(t *testing.T) {
	t.Parallel()
	s, j := setupManyParked(t)

	assert.Equal(t, "unparked 0 aggregates of group audit on account\n",
		s.ok(t, "group", "unpark", "audit", "account", "--all", "--reason", "no such reason"))
	assert.Equal(t, "unparked 0 aggregates of group audit on account\n",
		s.ok(t, "group", "unpark", "audit", "account", "--all", "--type", "no.such.type"))
	assert.Equal(t, "unparked 3 aggregates of group audit on account\n",
		s.ok(t, "group", "unpark", "audit", "account", "--all", "--reason", "nacked", "--type", "account.deposited.v1"))
	assert.Empty(t, s.ok(t, "group", "parked", "audit", "account"))
	join(t, j).handle(t, 6)
}

func TestAllFailedEventsAreSkipped(t *testing.T) {
	t.Parallel()
	s, j := setupManyParked(t)

	objects := lines(t, s.ok(t, "group", "skip", "audit", "account", "--all", "--yes", "--json"))
	require.Len(t, objects, 4)
	assert.Equal(t, "skipped", objects[0]["kind"])
	assert.InDelta(t, 2, objects[0]["next"], 0)
	assert.Equal(t, map[string]any{"kind": "skipped_all", "group": "audit", "topic": "account", "aggregates": 3.0}, objects[3])
	assert.Len(t, cells(t, s.ok(t, "group", "skipped", "audit", "account")), 3)
	assert.Equal(t, "skipped one event of each of 0 aggregates of group audit on account\n",
		s.ok(t, "group", "skip", "audit", "account", "--all", "--yes"))
	join(t, j).handle(t, 3)
}

func TestADryRunShowsWhatWouldBeEditedAndEditsNothing(t *testing.T) {
	t.Parallel()
	s, j := setupManyParked(t)
	for _, command := range []string{"unpark", "skip"} {
		dry := func(flags ...string) outcome {
			return s.run(t, append([]string{"group", command, "audit", "account", "--all", "--dry-run"}, flags...)...)
		}
		what := map[string]string{"unpark": "would unpark ", "skip": "would skip one event of each of "}[command]
		first, rows, _ := strings.Cut(dry().out, "\n")
		assert.Equal(t, what+"3 aggregates of group audit on account (dry run)", first)
		require.Len(t, cells(t, rows), 3)
		assert.Equal(t, "account.deposited.v1", cells(t, rows)[0]["TYPE"])
		assert.Equal(t, outcome{out: what + "0 aggregates of group audit on account (dry run)\n"}, dry("--type", "no.such.type"))
		objects := lines(t, dry("--json").out)
		require.Len(t, objects, 4)
		assert.Equal(t, "behind", objects[0]["kind"])
		assert.Equal(t, map[string]any{
			"kind": command + map[string]string{"unpark": "ed_all", "skip": "ped_all"}[command], "group": "audit", "topic": "account",
			"aggregates": 3.0, "dry_run": true,
		}, objects[3])
	}
	parked, err := parkedOf(t, j)
	require.NoError(t, err)
	assert.Equal(t, 3, parked, "nothing was edited")
}

func TestADryRunShowsAFewExamplesOfMany(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	for n := range 8 {
		park(t, j, account(strconv.Itoa(n+10)), 1)
	}
	o := s.run(t, "group", "unpark", "audit", "account", "--all", "--dry-run")
	first, rows, _ := strings.Cut(o.out, "\n")
	assert.Contains(t, first, "would unpark 8 aggregates")
	assert.Len(t, cells(t, rows), 5)
	assert.Equal(t, "3 more: the command parked lists all of them.\n", o.err)
}

// park lists an aggregate of group audit as parked.
func park(t *testing.T, j *journal.Journal, id aggregate.ID, number uint64) {
	t.Helper()
	require.NoError(t, checkpoint.New(j).ListBehind(t.Context(), checkpoint.Group{Name: "audit"}, checkpoint.Revision{Epoch: 1},
		checkpoint.Behind{Aggregate: id, Head: number, Parked: &checkpoint.Failure{Number: number, At: time.Now(), Reason: "it fails"}}))
}

func TestWhoSkipsAllIsToldHowManyBefore(t *testing.T) {
	t.Parallel()
	s, _ := setupManyParked(t)
	skip := []string{"group", "skip", "audit", "account", "--all", "--progress"}
	s.env.InTerminal, s.env.In = true, strings.NewReader("no\n")
	o := s.run(t, skip...)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "Group audit will never handle the failed events of 3 parked aggregates on account:\n  event 1 of account ")
	assert.Contains(t, o.err, " (account.deposited.v1)\n")
	assert.Contains(t, o.err, "nothing was done")
	assert.Len(t, cells(t, s.ok(t, "group", "parked", "audit", "account")), 3)

	s.env.In = strings.NewReader("audit\n")
	o = s.run(t, skip...)
	assert.Equal(t, "skipped one event of each of 3 aggregates of group audit on account\n", o.out)
	assert.Contains(t, o.err, "skipped 1 of 3 aggregates\n", "progress")

	s.env.In = strings.NewReader("") // the command does not ask
	assert.Equal(t, "skipped one event of each of 0 aggregates of group audit on account\n", s.ok(t, skip...))
}

func TestAnEditOfAllThatEndsEarlySaysHowFarItCame(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	s := setup(t)
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return db.Client(), nil }
	j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
	require.NoError(t, err)
	deposits(t, j, account("1"), 1, 1)
	m := join(t, j)
	m.next(t).Nack()
	require.Eventually(t, func() bool {
		parked, err := parkedOf(t, j)
		return err == nil && parked == 1
	}, patience, 5*time.Millisecond)
	require.NoError(t, m.Close())
	db.Inject(dynamotest.Refuse(&types.ResourceNotFoundException{}), dynamotest.On("TransactWriteItems"))

	o := s.run(t, "group", "skip", "audit", "account", "--all", "--yes")

	assert.Equal(t, command.ExitFailure, o.code)
	assert.Equal(t, "skipped one event of each of 0 aggregates of group audit on account\n", o.out)
	assert.Contains(t, o.err, "Run it again for the rest")
}

func TestOneEventIsSkippedAndNoOther(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)

	assert.Equal(t, "skipped account 1 of group audit; the next event is 3\n", s.ok(t, "group", "skip", "audit", "account", "1", "2"))
	o := s.run(t, "group", "skip", "audit", "account", "1", "2")
	assert.Equal(t, command.ExitFailure, o.code, "it was passed over before")
	assert.Contains(t, o.err, "not the next event, which is 3")
	msg := join(t, j).next(t)
	assert.Equal(t, "account-1/3", msg.UUID)
	msg.Ack()
}

func TestAnAggregateIsHandledAgain(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	assert.Equal(t, "reset account 1 of group audit; the next event is 2\n",
		s.ok(t, "group", "reset-aggregate", "audit", "account", "1", "1", "--yes"))
	join(t, j).handle(t, 4)
}
