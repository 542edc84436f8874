package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// The examples build on each other and need a DynamoDB, so one test runs them.
func TestTheExamplesWork(t *testing.T) {
	t.Parallel()
	client = testdb.Client(t)
	for _, example := range []func(){ExampleCreate, ExampleOpen, deposit, ExampleJournal_Head, ExampleJournal_Events, ExampleJournal_Heads, ExampleJournal_Tail} {
		example()
	}

	head, err := j.Head(t.Context(), aggregate.ID{Type: "account", Value: "42"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, head.Version)
	require.NoError(t, journal.Create(t.Context(), client, config))
	ExampleAdopt()
}
