package command_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// watchedGroup returns a group, and a context that ends when the group was listed some times. Each
// pass reads the membership twice.
func watchedGroup(t *testing.T, times int64) (*shell, *dynamotest.DB, context.Context) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 2}))
	s := setup(t)
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return db.Client(), nil }
	j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
	require.NoError(t, err)
	deposits(t, j, account("1"), 1, 1)
	m := join(t, j)
	m.handle(t, 1)
	require.NoError(t, m.Close())
	_, err = groups.Of(j, "audit", "account").Status(t.Context())
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	var passes atomic.Int64
	db.Observe(func(c dynamotest.Call) {
		if c.Operation == "GetItem" && c.Tables[0] == "checkpoint" && passes.Add(1) > 3*times {
			interrupt()
		}
	})
	return s, db, ctx
}

func TestGroupsAreShownAgainUntilInterrupted(t *testing.T) {
	t.Parallel()
	s, _, ctx := watchedGroup(t, 3)
	o := s.runWith(ctx, "groups", "--watch", "--interval", "1ms")
	assert.Equal(t, command.ExitOK, o.code, o.err)
	tables := strings.Split(o.out, "\n\n")
	assert.Len(t, tables, 3)
	for _, table := range tables {
		assert.Equal(t, "audit", cells(t, table)[0]["GROUP"])
	}
	assert.NotContains(t, o.out, "\x1b")

	s, _, ctx = watchedGroup(t, 3)
	o = s.runWith(ctx, "groups", "--watch", "--interval", "1ms", "--json")
	assert.Equal(t, command.ExitOK, o.code, o.err)
	assert.Len(t, lines(t, o.out), 3)
}

func TestATerminalIsDrawnAgain(t *testing.T) {
	t.Parallel()
	s, _, ctx := watchedGroup(t, 2)
	s.env.OutTerminal = true
	o := s.runWith(ctx, "groups", "audit", "account", "--watch", "--interval", "1ms")
	assert.Equal(t, command.ExitOK, o.code, o.err)
	assert.True(t, strings.HasPrefix(o.out, "\x1b[H\x1b[2J"+"group"), o.out)
	assert.Equal(t, 2, strings.Count(o.out, "\x1b[2J"))
}

func TestAWatchGoesOnAfterTrouble(t *testing.T) {
	t.Parallel()
	s, db, ctx := watchedGroup(t, 3)
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return db.Client(testdb.Once), nil }
	throttled := db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"), dynamotest.Table("checkpoint"), dynamotest.After(3), dynamotest.Times(1))
	o := s.runWith(ctx, "groups", "--watch", "--interval", "1ms")
	assert.Equal(t, command.ExitOK, o.code, o.err)
	assert.Equal(t, 1, throttled.Fired())
	assert.Contains(t, o.err, "throttled")

	o = s.run(t, "groups", "nobody", "--watch")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Equal(t, command.ExitUsage, s.run(t, "groups", "--watch", "--interval", "0s").code)
}
