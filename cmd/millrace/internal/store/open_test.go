package store_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// custom differs from the default in every setting of a journal.
var custom = journal.Config{
	Shards: 3, Layout: journal.Classic, Tables: journal.Tables{Journal: "orders", Snapshot: "order-heads"},
	Classic: journal.ClassicOptions{
		Resolver: resolver.JavaHash,
		Indexes:  journal.Indexes{JournalAggregate: "by-aggregate", JournalTail: "by-time"},
		Attributes: journal.Attributes{
			PartitionKey: "hash", SortKey: "range", AggregateID: "name", SequenceNumber: "ser_nr",
			Payload: "data", OccurredAt: "timestamp", Version: "size", TTL: "expires",
		},
	},
}

// packedCustom differs from the default in every setting of a journal of the packed layout.
var packedCustom = journal.Config{Shards: 3, Layout: journal.Packed, Tables: custom.Tables}

func TestAJournalIsOpenedByItsTableAlone(t *testing.T) {
	t.Parallel()
	for _, config := range []journal.Config{custom, packedCustom} {
		t.Run(string(config.Layout), func(t *testing.T) {
			t.Parallel()
			openedByItsTable(t, config)
		})
	}
}

func openedByItsTable(t *testing.T, config journal.Config) {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, config))
	j, err := journal.Open(t.Context(), client, config)
	require.NoError(t, err)
	id := aggregate.ID{Type: "order", Value: "1"}
	_, err = j.Internal().Append(t.Context(), storage.Commit{Aggregate: id, Events: []storage.Event{{ID: "a", Type: "placed"}}})
	require.NoError(t, err)

	opened, err := store.Open(t.Context(), client, journal.Config{Tables: journal.Tables{Journal: "orders"}})
	require.NoError(t, err)
	assert.Equal(t, 3, opened.Shards())
	assert.Equal(t, "order-heads", opened.Config().Tables.Snapshot)
	head, err := opened.Head(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, uint64(1), head.Version)
	page, err := opened.Internal().TailShard(t.Context(), storage.TailQuery{AggregateType: "order", Shard: opened.Internal().Shard(id)})
	require.NoError(t, err)
	assert.Len(t, page.Records, 1)
	many := 0
	for _, err := range opened.Events(t.Context(), id, 1, 1) {
		require.NoError(t, err)
		many++
	}
	assert.Equal(t, 1, many)
	assert.Equal(t, config.Classic.Indexes.JournalAggregate, opened.Config().Classic.Indexes.JournalAggregate)
	assert.Equal(t, config.Layout, opened.Config().Layout)
}

func TestWhatIsGivenMustBeSo(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, custom))
	for field, given := range map[string]journal.Config{
		"key resolver":   {Classic: journal.ClassicOptions{Resolver: resolver.FNV1a}},
		"shard count":    {Shards: 4},
		"snapshot table": {Tables: journal.Tables{Snapshot: "snapshot"}},
	} {
		given.Tables.Journal = "orders"
		_, err := store.Open(t.Context(), client, given)
		var mismatch *journal.DescriptorMismatchError
		require.ErrorAs(t, err, &mismatch)
		assert.Equal(t, field, mismatch.Field)
	}
}

type lastByte struct{}

func (lastByte) Name() string { return "last-byte" }
func (lastByte) Shard(id aggregate.ID, shards int) int {
	return int(id.Value[len(id.Value)-1]) % shards
}

func TestAResolverOfTheApplicationsOwnIsNotGuessed(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 4, Classic: journal.ClassicOptions{Resolver: lastByte{}}}))
	_, err := store.Open(t.Context(), client, journal.Config{Tables: journal.Tables{Journal: "journal"}})
	var mismatch *journal.DescriptorMismatchError
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, "last-byte", mismatch.Stored)
}

func TestATableThatMayNotBeDescribedIsOpenedWithDefaultNames(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	db.Inject(dynamotest.Refuse(&denied{}), dynamotest.On("DescribeTable"))
	j, err := store.Open(t.Context(), db.Client(), journal.Config{Tables: journal.Tables{Journal: "journal"}})
	require.NoError(t, err)
	assert.Equal(t, 4, j.Shards())
}

func TestAMissingTableIsNamed(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), testdb.Client(t), journal.Config{Tables: journal.Tables{Journal: "nowhere"}})
	require.ErrorIs(t, err, journal.ErrTableMissing)
	assert.ErrorContains(t, err, "nowhere")
	var sdk *types.ResourceNotFoundException
	assert.ErrorAs(t, err, &sdk)
}
