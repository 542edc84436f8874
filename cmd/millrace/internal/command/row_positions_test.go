package command_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

type depositedV1 struct{}

func (depositedV1) EventType() string { return "account.deposited.v1" }

func TestAGroupWhoseRowsAreThePositionsIsOperatedLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 3)
	table := projection.Table{Name: "totals", PartitionKey: "id"}
	require.NoError(t, projection.CreateTable(t.Context(), s.client, table))
	rows, err := projection.NewRows(s.client, projection.RowTable{Table: table, Prefix: "account#"}, projection.Config{},
		projection.OnRow(func(_ context.Context, _ depositedV1, r *journal.Record) (projection.RowUpdate, error) {
			if r.Number == 2 {
				return projection.RowUpdate{}, errors.New("broken")
			}
			return projection.RowUpdate{Expression: "REMOVE seen"}, nil
		}))
	require.NoError(t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "totals", Positions: rows, Failures: subscriber.Park(1),
		Timing: subscriber.Timing{PollInterval: 5 * time.Millisecond, BehindAfter: 10 * time.Millisecond, CommitInterval: 10 * time.Millisecond},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	go func() {
		for msg := range messages {
			if rows.Handle(msg) == nil {
				msg.Ack()
			} else {
				msg.Nack()
			}
		}
	}()
	require.Eventually(t, func() bool { return sub.Stats().Parked == 1 }, patience, time.Millisecond, "the aggregate must be parked")

	assert.Equal(t, "2", cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"])
	assert.Contains(t, s.ok(t, "groups", "totals", "account"), "rows of table totals")
	object := lines(t, s.ok(t, "groups", "--json"))[0]
	assert.Equal(t, "totals", object["row_table"])
	assert.NotContains(t, object, "external_positions")
	s.ok(t, "group", "skip", "totals", "account", "1", "2")
	require.Eventually(t, func() bool { return cells(t, s.ok(t, "groups", "--exact"))[0]["LAG"] == "0" }, patience, 5*time.Millisecond)

	o := s.run(t, "group", "reset-aggregate", "totals", "account", "1", "1", "--yes")
	assert.Equal(t, command.ExitFailure, o.code, o.err)
	assert.Contains(t, o.err, "reset it to 0")
}
