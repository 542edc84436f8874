package command_test

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestSkippedEventsAreListedAndForgotten(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)
	s.ok(t, "group", "skip", "audit", "account", "1", "2")
	m := joinWith(t, j, subscriber.Skip(1), patience)
	m.next(t).Nack()
	deposits(t, j, account("1"), 4, 4)
	m.handle(t, 1)
	require.NoError(t, m.Close())

	rows := cells(t, s.ok(t, "group", "skipped", "audit", "account"))
	require.Len(t, rows, 2)
	assert.Equal(t, []string{"1", "2", "account.deposited.v1"}, []string{rows[0]["AGGREGATE"], rows[0]["EVENT"], rows[0]["TYPE"]})
	assert.Contains(t, rows[0]["REASON"], "skipped by an operator, parked because")
	assert.Equal(t, "3", rows[1]["EVENT"])
	assert.Equal(t, "the message was nacked without a reason (see subscriber.NackReason), once", rows[1]["REASON"])
	objects := lines(t, s.ok(t, "group", "skipped", "audit", "account", "--json"))
	require.Len(t, objects, 2)
	assert.Equal(t, "skipped_event", objects[1]["kind"])
	assert.InDelta(t, 3, objects[1]["number"], 0)
	assert.Equal(t, "account.deposited.v1", objects[1]["type"])
	assert.NotEmpty(t, objects[1]["skipped_at"])

	assert.Equal(t, "forgotten that group audit skipped event 2 of account 1\n", s.ok(t, "group", "forget-skipped", "audit", "account", "1", "2"))
	o := s.run(t, "group", "forget-skipped", "audit", "account", "1", "2")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "event was not skipped")
	assert.Contains(t, o.err, "`millrace group skipped` lists")
	objects = lines(t, s.ok(t, "group", "forget-skipped", "audit", "account", "1", "3", "--json"))
	assert.Equal(t, "forgotten", objects[0]["kind"])
	assert.InDelta(t, 3, objects[0]["number"], 0)
	assert.Empty(t, s.ok(t, "group", "skipped", "audit", "account"))
}

func TestSkippedEventsAreRetried(t *testing.T) {
	t.Parallel()
	s, j := setupParked(t)
	var mu sync.Mutex
	repaired, handled := false, map[string]bool{}
	joinWith(t, j, subscriber.Defer(subscriber.Backoff{Pause: time.Hour}), time.Second).handleAll(func(msg *message.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		if repaired {
			handled[msg.UUID] = true
		}
		return repaired
	})
	handledAgain := func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(handled)
	}
	s.ok(t, "group", "unpark", "audit", "account", "1")
	var rows []map[string]string
	left := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			rows = cells(t, s.ok(t, "group", "skipped", "audit", "account"))
			return len(rows) == n
		}, patience, 5*time.Millisecond, "%d events must be listed", n)
	}
	left(2)
	mu.Lock()
	repaired = true
	mu.Unlock()
	assert.Regexp(t, "^20", rows[0]["RETRY"])
	object := lines(t, s.ok(t, "group", "skipped", "audit", "account", "--json"))[0]
	assert.NotEmpty(t, object["due"])
	assert.InDelta(t, 1, object["attempts"], 0)

	assert.Equal(t, "retrying event 2 of account 1 for group audit\n", s.ok(t, "group", "retry-skipped", "audit", "account", "1", "2"))
	left(1)
	assert.Equal(t, "3", rows[0]["EVENT"])
	assert.Equal(t, map[string]bool{"account-1/2": true}, handledAgain())
	assert.Contains(t, s.ok(t, "group", "retry-skipped", "audit", "account", "--all", "--reason", "no such reason"), "retrying 0 events")
	objects := lines(t, s.ok(t, "group", "retry-skipped", "audit", "account", "--all", "--json"))
	last := objects[len(objects)-1]
	assert.Equal(t, "retried_all", last["kind"])
	assert.InDelta(t, 1, last["events"], 0)
	left(0)
	assert.Equal(t, map[string]bool{"account-1/2": true, "account-1/3": true}, handledAgain())
	o := s.run(t, "group", "retry-skipped", "audit", "account", "1", "9")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "event was not skipped")
}

func TestAStoppedGroupTellsWhyAndGoesOnWhenItIsResumed(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 2)
	var repaired atomic.Bool
	joinWith(t, j, subscriber.Stop(1), time.Second).handleAll(func(msg *message.Message) bool {
		return repaired.Load() || msg.UUID == "account-1/1"
	})
	require.Eventually(t, func() bool {
		rows := cells(t, s.ok(t, "groups"))
		return len(rows) == 1 && rows[0]["STATE"] == "stopped"
	}, patience, 5*time.Millisecond, "the group must be stopped")

	out := s.ok(t, "groups", "audit", "account")
	assert.Regexp(t, `(?m)^state +stopped$`, out)
	assert.Regexp(t, `(?m)^stopped by +event 2 of account 1 \(account.deposited.v1\)$`, out)
	assert.Regexp(t, `(?m)^stopped at +20`, out)
	assert.Regexp(t, `(?m)^reason +the message was nacked without a reason \(see subscriber\.NackReason\), once$`, out)
	object := lines(t, s.ok(t, "groups", "--json"))[0]
	assert.Equal(t, true, object["paused"])
	stopped, ok := object["stopped"].(map[string]any)
	require.True(t, ok)
	assert.InDelta(t, 2, stopped["number"], 0)
	assert.Equal(t, map[string]any{"type": "account", "value": "1"}, stopped["aggregate"])

	repaired.Store(true)
	out = s.ok(t, "group", "resume", "audit", "account")
	assert.NotContains(t, out, "stopped")
	require.Eventually(t, func() bool { return cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"] == "0" }, patience, 5*time.Millisecond,
		"the event must be handled")
}
