package layouttest

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal/journaltype"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// Settings returns settings with the names of package journal and four shards.
func Settings() engine.Settings {
	return engine.Settings{Settings: table.Settings{
		Tables: journaltype.Tables{Journal: "journal", Snapshot: "snapshot", Checkpoint: "checkpoint"},
		ClassicOptions: journaltype.ClassicOptions{
			Indexes: journaltype.Indexes{
				JournalAggregate: "journal-aid-index", SnapshotAggregate: "snapshot-aid-index", JournalTail: "journal-tail-index",
			},
			Attributes: journaltype.Attributes{
				PartitionKey: "pkey", SortKey: "skey", AggregateID: "aid", SequenceNumber: "seq_nr", Payload: "payload",
				OccurredAt: "occurred_at", Version: "version", TTL: "ttl",
			},
			Resolver: resolver.FNV1a, OccurredAtUnit: time.Millisecond,
		},
		// On a busy machine a commit can take long.
		Shards: 4, RetryBudget: time.Minute, NewID: uuid.NewString,
	}}
}

// Engine returns an engine. The client may be nil for functions that make no requests.
func Engine(client journaltype.Client, kind engine.Kind, change ...func(*engine.Settings)) *engine.Engine {
	settings := Settings()
	for _, c := range change {
		c(&settings)
	}
	settings.Layout = kind.Name
	return engine.New(client, settings, []engine.Kind{kind})
}

// Open returns an engine with empty tables in a database of its own.
func Open(t *testing.T, kind engine.Kind) *engine.Engine {
	t.Helper()
	return create(t, testdb.Client(t), kind)
}

func create(t *testing.T, client *dynamodb.Client, kind engine.Kind) *engine.Engine {
	t.Helper()
	e := Engine(client, kind)
	for _, input := range e.Layout.Tables() {
		_, err := client.CreateTable(t.Context(), input)
		require.NoError(t, err)
	}
	require.NoError(t, e.WriteDescriptor(t.Context()))
	return e
}
