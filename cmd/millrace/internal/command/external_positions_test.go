package command_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// ledger is a store of external positions for one member.
type ledger struct{ positions sync.Map }

func (l *ledger) Claim(_ context.Context, _ subscriber.GroupKey, id aggregate.ID, _ uint64) (uint64, bool, error) {
	position, found := l.positions.Load(id)
	if !found {
		return 0, false, nil
	}
	return position.(uint64), true, nil
}

func (l *ledger) Advance(_ context.Context, _ subscriber.GroupKey, id aggregate.ID, _, _, to uint64) error {
	l.positions.Store(id, to)
	return nil
}

func TestAGroupWithExternalPositionsIsShownWithoutLag(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 2)
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "totals", Positions: &ledger{}, Failures: subscriber.Park(1),
		Timing: subscriber.Timing{PollInterval: 5 * time.Millisecond, BehindAfter: 10 * time.Millisecond},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	member{sub, messages}.next(t).Nack()
	require.Eventually(t, func() bool { return sub.Stats().Parked == 1 }, patience, time.Millisecond, "the aggregate must be parked")

	row := cells(t, s.ok(t, "groups"))[0]
	assert.Equal(t, []string{"totals", "active", "-", "-"}, []string{row["GROUP"], row["STATE"], row["LAG"], row["BEHIND"]})
	assert.Equal(t, "-", cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"])
	assert.Contains(t, s.ok(t, "groups", "totals", "account"), "external, in a store of the members")
	object := lines(t, s.ok(t, "groups", "--json"))[0]
	assert.Equal(t, true, object["external_positions"])
	assert.NotContains(t, object, "events")
	parked := cells(t, s.ok(t, "group", "parked", "totals", "account"))
	require.Len(t, parked, 1)
	assert.Equal(t, "1", parked[0]["AGGREGATE"])

	for _, what := range [][]string{{"1", "1"}, {"--all", "--yes"}, {"--all", "--dry-run"}} {
		o := s.run(t, append([]string{"group", "skip", "totals", "account"}, what...)...)
		assert.Equal(t, command.ExitFailure, o.code)
		assert.Contains(t, o.err, "positions are not in the checkpoint table")
		assert.Contains(t, o.err, "docs/guides/sql.md")
	}
	assert.Contains(t, s.ok(t, "group", "unpark", "totals", "account", "--all", "--dry-run"), "would unpark 1 aggregate of group totals")
	s.ok(t, "group", "unpark", "totals", "account", "1")
}
