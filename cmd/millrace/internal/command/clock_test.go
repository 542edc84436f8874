package command_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// setupSkewed returns commands on a machine whose clock is ahead of DynamoDB's, with three events
// of one account and a group that has handled none of them.
func setupSkewed(t *testing.T, ahead time.Duration) (*shell, *dynamotest.DB) {
	t.Helper()
	if testdb.IsLocal() {
		t.Skip("the clock of DynamoDB Local cannot be set")
	}
	s, db := setup(t), dynamotest.Open()
	s.client = db.Client()
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return s.client, nil }
	db.Clock().Set(time.Now().Add(-ahead))
	require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Shards: 4, Layout: journal.Packed}))
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 3)
	_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: "g", Topic: "account"},
		checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), time.Time{}))
	require.NoError(t, err)
	return s, db
}

func TestTimesOnAFastMachineAreThoseOfDynamoDB(t *testing.T) {
	t.Parallel()
	s, db := setupSkewed(t, 24*time.Hour)
	file := filepath.Join(t.TempDir(), "new.jsonl")
	assert.Contains(t, s.ok(t, "export", file, "--type", "account", "--since", "1h"), "exported 1 aggregate")
	assert.Len(t, lines(t, s.ok(t, "tail", "account", "--since", "1h", "--json")), 3)

	assert.Regexp(t, "begins again at [0-9-]+T", s.run(t, "group", "reset", "g", "account", "--to", "1h").err, "the time that 1h means")
	s.ok(t, "group", "reset", "g", "account", "--to", "1h", "--yes")
	assert.Equal(t, command.ExitFailure, s.run(t, "group", "catch-up", "g", "account", "--timeout", "0s").code,
		"the group has to handle the events of the last hour")

	later := db.Clock().Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, args := range [][]string{
		{"group", "reset", "g", "account", "--yes", "--to", later},
		{"tail", "account", "--since", later},
		{"export", file + ".2", "--type", "account", "--since", later},
	} {
		o := s.run(t, args...)
		assert.Equal(t, command.ExitUsage, o.code, "%v", args)
		assert.Contains(t, o.err, "is in the future: it is ")
	}
	assert.NoFileExists(t, file+".2")
}

func TestCatchUpOnASlowMachineCountsAllEvents(t *testing.T) {
	t.Parallel()
	s, db := setupSkewed(t, -24*time.Hour)
	db.Clock().Advance(time.Minute) // estimates of DynamoDB's time differ by up to a second
	o := s.run(t, "group", "catch-up", "g", "account", "--before", "now", "--timeout", "0s")
	assert.Equal(t, command.ExitFailure, o.code, o.out)
}
