package load_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/load"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

func TestEveryCommandOfALoadShowsOnItsPage(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()

	report := &load.Report{}
	// A busy machine takes longer.
	for lasts := time.Second; report.Commands <= 4*3 && lasts < patience; lasts *= 2 {
		var err error
		report, err = load.Run(t.Context(), client, load.Config{
			Rooms: 4, Users: 3, Duration: lasts, Think: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
	}

	assert.Zero(t, report.Failed)
	assert.Greater(t, report.Commands, 4*3, "they must play")
	assert.Len(t, report.Latencies, report.Commands)
	assert.LessOrEqual(t, report.Quantile(0.5), report.Quantile(0.99))
	assert.Regexp(t, `^planningpoker 4 rooms of 3 users: \d+ commands a second, commit to page \d+ ms in the median, \d+ ms at 99%, 0 failed$`, fmt.Sprint(report))
	tables, err := client.ListTables(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, tables.TableNames, "a load must clean up")
}
