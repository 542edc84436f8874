package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// docs/reference/cost.md says so under "By operation".
func TestACommitCostsOneRoundTripAndTwoUnitsForEachKilobyteAndOneInEachIndex(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 4})
	calls := db.Record()

	// 2 KB with its keys
	event := storage.Event{Type: "account.noted.v1", Payload: make([]byte, 1500)}
	testjournal.Append(t, j, storage.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: "42"}, Events: []storage.Event{event, event, event},
	})
	require.Len(t, calls.Calls(), 1)
	assert.ElementsMatch(t, []dynamotest.Capacity{
		{Table: "snapshot", WriteUnits: 2},
		{Table: "snapshot", Index: "snapshot-aid-index", WriteUnits: 1},
		{Table: "journal", WriteUnits: 3 * 2 * 2},
		{Table: "journal", Index: "journal-aid-index", WriteUnits: 3 * 2},
		{Table: "journal", Index: "journal-tail-index", WriteUnits: 3 * 2},
	}, calls.Calls()[0].Capacity)
}

func TestACommandIDCostsTwoUnitsMore(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	calls := db.Record()
	s.write(t, user("1"), 1, 1)
	_, without := calls.Units()
	calls.Reset()
	_, err := s.execute(t, user("2"), 0, 1, "6f1c1a3e-2d58-4a5a-9c37-0f6d1c0b7e55")
	require.NoError(t, err)
	_, with := calls.Units()
	assert.InDelta(t, without+2, with, 0)
}
