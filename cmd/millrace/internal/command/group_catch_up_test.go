package command_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// once waits for group audit, and checks once.
var once = strings.Fields("group catch-up audit account --timeout 0s")

// passOver moves the cursors of the group to a time, so that an estimate passes over all earlier
// events, as it does over events of a machine with a wrong clock.
func passOver(t *testing.T, j *journal.Journal, until time.Time) {
	t.Helper()
	for shard := range j.Shards() {
		k := checkpoint.Shard{Group: checkpoint.Group{Name: "audit"}, Topic: "account", Number: shard}
		require.NoError(t, checkpoint.New(j).SaveCursor(t.Context(), k, checkpoint.CursorRow{Epoch: 1, Cursor: until, Reconciled: until}))
	}
}

func TestAnEstimateOfZeroDoesNotEndTheWaitForAGroup(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	passOver(t, j, time.Now().Add(time.Hour))
	require.Equal(t, "0", cells(t, s.ok(t, "groups", "audit"))[0]["LAG"], "the estimate")

	o := s.run(t, once...)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "group audit on account has not handled 2 events of 1 aggregate: no member owns a shard")
	assert.Contains(t, o.err, "Start a program that runs the group.")
	assert.Empty(t, o.out)

	s.ok(t, "group", "skip", "audit", "account", "2", "1", "--yes")
	s.ok(t, "group", "skip", "audit", "account", "2", "2", "--yes")
	assert.Regexp(t, `(?m)^lag +0 events of 0 aggregates$`, s.ok(t, once...))
	line := lines(t, s.ok(t, append(once[:len(once):len(once)], "--json")...))[0]
	assert.Equal(t, "group", line["kind"])
	assert.InDelta(t, 0, line["events"], 0)
	assert.InDelta(t, 2, line["skipped"], 0, "they count as handled")
}

func TestAWaitForAGroupEndsWhenItsMembersHaveHandledAllEvents(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	log := &screen{}
	code := make(chan int, 1)
	go func() {
		env := s.env
		env.Out, env.Err = &screen{}, log
		code <- command.Run(t.Context(), strings.Fields("group catch-up audit account"), env)
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "no member owns a shard; waiting\n") }, patience, 5*time.Millisecond)
	join(t, j).handleAll(func(*message.Message) bool { return true })
	assert.Equal(t, command.ExitOK, <-code, log)
}

func TestAWaitForEventsBeforeATimeIgnoresLaterOnes(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	var first time.Time
	for r, err := range j.Events(t.Context(), account("2"), 1, 1) {
		require.NoError(t, err)
		first = r.OccurredAt
	}
	before := func(at time.Time) []string {
		return append(once[:len(once):len(once)], "--before", at.UTC().Format(time.RFC3339Nano))
	}
	assert.Regexp(t, `(?m)^lag +2 events of 1 aggregate$`, s.ok(t, before(first)...))
	assert.Equal(t, command.ExitFailure, s.run(t, before(first.Add(time.Second))...).code)
}

func TestAWaitEndsAtOnceIfOnlyAnOperatorCanHelpTheGroup(t *testing.T) {
	t.Parallel()
	waits := strings.Fields("group catch-up audit account --timeout 1h")
	fails := func(s *shell, texts ...string) {
		t.Helper()
		o := s.run(t, waits...)
		assert.Equal(t, command.ExitFailure, o.code)
		for _, text := range texts {
			assert.Contains(t, o.err, text)
		}
	}
	s, _ := setupParked(t)
	fails(s, "2 events of 1 aggregate (1 parked): aggregates are parked", "`millrace group parked audit account` lists them")

	s, j := setupGroup(t)
	s.ok(t, "group", "pause", "audit", "account")
	fails(s, "it is paused", "`millrace group resume audit account` continues")

	s.ok(t, "group", "resume", "audit", "account")
	joinWith(t, j, subscriber.Stop(1), time.Second).handleAll(func(*message.Message) bool { return false })
	require.Eventually(t, func() bool { return cells(t, s.ok(t, "groups"))[0]["STATE"] == "stopped" }, patience, 5*time.Millisecond)
	fails(s, "an event that kept failing has stopped it", "`millrace groups audit account` shows the event")
}

func TestAWaitSaysThatAggregatesAreBlocked(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	_, err := checkpoint.New(j).ModifyMembership(t.Context(), checkpoint.Key{Group: "audit", Topic: "account"}, func(m checkpoint.Membership) (checkpoint.Membership, error) {
		m, number := m.Join(checkpoint.Member{Lease: patience, Heartbeat: checkpoint.NextHeartbeat(0, time.Now(), patience)})
		return m.Take(number, []int{0, 1, 2, 3}), nil
	})
	require.NoError(t, err)
	for failed, want := range map[*checkpoint.Failure]string{
		nil:                            "aggregates wait for a slow handler",
		{Number: 1, Reason: "no luck"}: "aggregates are blocked by an event that is tried again",
	} {
		require.NoError(t, checkpoint.New(j).ListBehind(t.Context(), checkpoint.Group{Name: "audit"}, checkpoint.Revision{Epoch: 100},
			checkpoint.Behind{Aggregate: account("2"), Head: 2, Failure: failed}))
		o := s.run(t, once...)
		assert.Equal(t, command.ExitFailure, o.code)
		assert.Contains(t, o.err, want)
		assert.Contains(t, o.err, "`millrace group behind audit account` lists them")
	}
}

func TestAWaitForAllGroupsNamesTheOneThatIsBehind(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	s.ok(t, "group", "skip", "audit", "account", "2", "1", "--yes")
	s.ok(t, "group", "skip", "audit", "account", "2", "2", "--yes")
	for _, args := range [][]string{{}, {"audit"}} {
		rows := cells(t, s.ok(t, append([]string{"group", "catch-up"}, args...)...))
		require.Len(t, rows, 1)
		assert.Equal(t, "0", rows[0]["LAG"])
		assert.Equal(t, "2", rows[0]["SKIPPED"])
	}
	begins(t, j, "totals")
	o := s.run(t, "group", "catch-up", "--timeout", "0s", "--json")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "group totals on account has not handled 5 events of 2 aggregates")
	assert.Equal(t, "audit", lines(t, o.out)[0]["group"])
	assert.Contains(t, s.run(t, "group", "catch-up", "nobody").err, "`millrace groups` lists all groups")
}

func TestAWaitForAllGroupsPassesOverExternalPositions(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	_, err := checkpoint.New(j).ModifyMembership(t.Context(), checkpoint.Key{Group: "audit", Topic: "account"}, func(m checkpoint.Membership) (checkpoint.Membership, error) {
		m.ExternalPositions = true
		return m, nil
	})
	require.NoError(t, err)
	note := "Group audit on account has external positions: compare it in its own store."
	all := strings.Fields("group catch-up --timeout 0s")

	o := s.run(t, all...)
	assert.Equal(t, command.ExitOK, o.code)
	assert.Contains(t, o.err, note)

	begins(t, j, "totals")
	o = s.run(t, all...)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, note)
	assert.Contains(t, o.err, "group totals on account has not handled 5 events of 2 aggregates", "the others are checked")

	for _, named := range [][]string{once, strings.Fields("group catch-up audit --timeout 0s")} {
		o = s.run(t, named...)
		assert.Equal(t, command.ExitFailure, o.code, "its lag is not known")
		assert.Contains(t, o.err, "positions are not in the checkpoint table")
	}
}

func TestAWaitForAGroupThatIsInterruptedSaysSo(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	log := &screen{}
	env := s.env
	env.Out, env.Err = &screen{}, writer(func(p []byte) (int, error) {
		if strings.Contains(string(p), "; waiting") {
			interrupt()
		}
		return log.Write(p)
	})
	assert.Equal(t, command.ExitFailure, command.Run(ctx, strings.Fields("group catch-up audit account"), env))
	assert.True(t, strings.HasSuffix(log.String(), "; waiting\nmillrace: interrupted\n"), log)
}

func TestAnAggregateThatCannotBeReadIsNotHandled(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	s.ok(t, "group", "skip", "audit", "account", "2", "1", "--yes")
	s.ok(t, "group", "skip", "audit", "account", "2", "2", "--yes")
	long := account(strings.Repeat("x", 1_010)) // longer than ids may be
	text := func(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }
	number := func(value string) types.AttributeValue { return &types.AttributeValueMemberN{Value: value} }
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("snapshot"), Item: map[string]types.AttributeValue{
		"pkey": text(storage.ShardKey("account", 0)), "skey": text(long.String() + "-0"),
		"aid": text(long.String()), "seq_nr": number("0"), "version": number("3"),
	}})
	require.NoError(t, err)

	o := s.run(t, once...)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "it is not known whether audit has handled all events of account")
	assert.Contains(t, o.err, "`millrace verify` finds all faults")
}

// heads counts the reads of heads, which only exact polls need.
type heads struct {
	*dynamodb.Client
	reads atomic.Int64
}

func (h *heads) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if *in.TableName == "snapshot" {
		h.reads.Add(1)
	}
	return h.Client.Query(ctx, in, o...)
}

func TestAWaitForAGroupEndsAfterItsTimeoutAndComparesAllAggregatesRarely(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, _ := setupGroup(t)
		h := &heads{Client: s.client}
		s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return h, nil }
		began := time.Now()
		o := s.run(t, strings.Fields("group catch-up audit account --timeout 10m")...)
		assert.Equal(t, command.ExitFailure, o.code)
		assert.Contains(t, o.err, "has not handled 2 events")
		assert.Equal(t, 10*time.Minute, time.Since(began))
		assert.LessOrEqual(t, h.reads.Load(), int64(11*4), "one a minute, of four shards")
		assert.GreaterOrEqual(t, h.reads.Load(), int64(8*4))
	})
}
