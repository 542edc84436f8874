package command_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
)

func TestTailShowsTheEventsOfATopicInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	now := time.Now().Add(-5 * time.Minute)
	j := s.open(t, journal.Config{Now: func() time.Time { now = now.Add(time.Second); return now }})
	for n := 1; n <= 3; n++ {
		for _, id := range []string{"b", "a", "d", "c"} {
			deposits(t, j, account(id), n, n)
		}
	}

	rows := cells(t, s.ok(t, "tail", "account", "--payload"))
	require.Len(t, rows, 12)
	var order []string
	for _, row := range rows {
		order = append(order, row["AGGREGATE"]+row["NUMBER"])
	}
	assert.Equal(t, "b1 a1 d1 c1 b2 a2 d2 c2 b3 a3 d3 c3", strings.Join(order, " "))
	assert.Equal(t, `{"Amount":3}`, rows[11]["PAYLOAD"])
}

func TestTailBeginsWhereItIsTold(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	at := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	j := s.open(t, journal.Config{Now: func() time.Time { return at }})
	deposits(t, j, account("old"), 1, 1)
	at = at.Add(time.Hour)
	deposits(t, j, account("new"), 1, 1)

	o := s.run(t, "tail", "account")
	assert.Equal(t, command.ExitOK, o.code)
	assert.Empty(t, o.out)
	assert.Contains(t, o.err, `No events of "account" since `)
	assert.Len(t, lines(t, s.ok(t, "tail", "account", "--since", "beginning", "--json")), 2)
	since := lines(t, s.ok(t, "tail", "account", "--since", "2025-06-01T15:00:00+02:00", "--json"))
	require.Len(t, since, 1)
	assert.Equal(t, map[string]any{"type": "account", "value": "new"}, since[0]["aggregate"])
	at = time.Now().Add(-20 * time.Minute)
	deposits(t, j, account("newer"), 1, 1)
	assert.Len(t, lines(t, s.ok(t, "tail", "account", "--since", "30m", "--json")), 1)
}

func TestTailOfATopicThatHasNothingSaysWhatATopicIs(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	o := s.run(t, "tail", "acount", "--since", "beginning")
	assert.Equal(t, outcome{code: command.ExitNoTopic, err: "millrace: there is no topic \"acount\": the journal has no aggregate of that type\n" +
		"`millrace topics` lists all topics. A topic is an aggregate type: the name that the application passes to aggregate.Define.\n"}, o)
}

func TestTailFollowsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out screen
	env := s.env
	env.Out, env.Err = &out, &screen{}
	ended := make(chan int, 1)
	go func() {
		ended <- command.Run(ctx, []string{"tail", "account", "--follow", "--interval", "5ms"}, env)
	}()

	shows := func(id string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), id) }, patience, 5*time.Millisecond,
			"the tail must show %s: %s", id, &out)
	}
	shows("account.deposited.v1")
	deposits(t, j, account("2"), 1, 1)
	shows("  2          1 ")
	interrupt()
	select {
	case code := <-ended:
		assert.Equal(t, command.ExitOK, code, "an interrupt is how one ends it")
	case <-time.After(patience):
		require.Fail(t, "the tail must end with the interrupt")
	}
}
