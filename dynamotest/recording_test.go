package dynamotest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestACallNamesEachOfItsTablesOnce(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.create("other")
	calls := tab.db.Record()
	in := batch("a", "b")
	in.RequestItems["other"] = batch("c").RequestItems["tab"]
	require.NoError(t, done(t.Context(), tab.client.BatchWriteItem, in))
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "b")))
	assert.Equal(t, []string{"other", "tab"}, calls.Calls()[0].Tables)
	assert.Equal(t, []string{"tab"}, calls.Calls()[1].Tables)
}

func TestARecordingCountsBytesAndUnitsOfSomeOperations(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calls := tab.db.Record()
	tab.db.Inject(dynamotest.LoseReply(), dynamotest.Times(1))
	tab.put("a", 1, nil)
	tab.get("a", 1)
	assert.InDelta(t, 1, calls.Calls()[0].WriteUnits, 0, "whose reply was lost")
	assert.Zero(t, calls.Calls()[0].ReplyBytes)
	assert.NotZero(t, calls.Calls()[2].ReplyBytes)
	read, write := calls.Units("PutItem")
	assert.Equal(t, []float64{0, 2}, []float64{read, write})
	read, write = calls.Units()
	assert.Equal(t, []float64{1, 2}, []float64{read, write})
	calls.Reset()
	assert.Empty(t, calls.Calls())
	calls.Stop()
	tab.get("a", 1)
	assert.Empty(t, calls.Calls())
}

func TestTheClientHasNoQuotaOfRetries(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle())
	calls := tab.db.Record()
	for range 60 {
		require.Error(t, done(t.Context(), tab.client.GetItem, getting("a", 1)))
	}
	assert.Len(t, calls.Calls(), 3*60)
}
