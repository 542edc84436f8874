package interop_test

import (
	"os"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
	"github.com/millrace-dev/millrace/repository"
)

// peerConfig is the config for tables with the names that users of event-store-adapter-js use.
var peerConfig = journal.Config{
	EventType: typeInPayload,
	Tables:    journal.Tables{Journal: "journal", Snapshot: "snapshot", Checkpoint: "checkpoint"},
	Shards:    32,
	Classic: journal.ClassicOptions{
		Indexes:  journal.Indexes{JournalAggregate: "journal-aid-index", SnapshotAggregate: "snapshots-aid-index"},
		Resolver: resolver.JSHash,
	},
}

// createTables creates what a program of Millrace needs before it shares tables.
func createTables(t *testing.T, client *dynamodb.Client) {
	t.Helper()
	config := peerConfig
	config.Layout = journal.Classic
	require.NoError(t, journal.Create(t.Context(), client, config))
}

func setup(t *testing.T) *dynamodb.Client {
	t.Helper()
	t.Parallel()
	if os.Getenv("MILLRACE_INTEROP") == "" {
		t.Skip("needs Node 20, npm and DynamoDB Local: make interop")
	}
	return dynamolocaltest.Client(t)
}

// addTailIndex adds the index that tables of the family lack, as docs/guides/interop.md says.
func addTailIndex(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &table,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pkey"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("occurred_at"), AttributeType: types.ScalarAttributeTypeN},
		},
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String("journal-tail-index"),
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("pkey"), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String("occurred_at"), KeyType: types.KeyTypeRange},
			},
			Projection:            &types.Projection{ProjectionType: types.ProjectionTypeAll},
			ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(10), WriteCapacityUnits: aws.Int64(5)},
		}}},
	})
	require.NoError(t, err)
}

// ours is Millrace's side of the tables.
type ours struct {
	t       *testing.T
	journal *journal.Journal
	*repository.Repository[Account]
}

func open(t *testing.T, client *dynamodb.Client, config journal.Config, snapshots repository.SnapshotPolicy) ours {
	t.Helper()
	j := testjournal.Open(t, client, config)
	share := sharing(snapshots)
	share.Logger = complaints{t: t}
	repo := testjournal.Repository(t, j, Accounts, share)
	return ours{t: t, journal: j, Repository: repo}
}

// complaints fails a test when a snapshot is not stored or cannot be used.
type complaints struct {
	watermill.NopLogger
	t *testing.T
}

func (c complaints) Error(message string, err error, fields watermill.LogFields) {
	c.t.Errorf("%s: %v %v", message, err, fields)
}

func (o ours) load(id string) repository.Aggregate[Account] {
	o.t.Helper()
	a, err := o.Load(o.t.Context(), id)
	require.NoError(o.t, err)
	return a
}

func (o ours) execute(id string, events ...aggregate.Event[Account]) {
	o.t.Helper()
	testjournal.Execute(o.t, o, id, func(Account) (aggregate.Events[Account], error) { return events, nil })
}

// records returns all events of an account. They must be numbered 1 to n without gaps.
func (o ours) records(id string) (records []*journal.Record) {
	o.t.Helper()
	name := aggregate.ID{Type: "account", Value: id}
	head, err := o.journal.Head(o.t.Context(), name)
	require.NoError(o.t, err)
	for record, err := range o.journal.Events(o.t.Context(), name, 1, head.Version) {
		require.NoError(o.t, err)
		records = append(records, record)
		require.EqualValues(o.t, len(records), record.Number)
	}
	return records
}

// requireSame compares an account on both sides with the expected one: state, version, and each
// event.
func requireSame(t *testing.T, ours ours, peer *peer, id string, want Account, version uint64) {
	t.Helper()
	a := ours.load(id)
	require.Equal(t, want, a.State, "account %s as we load it", id)
	require.Equal(t, version, a.Version, "account %s as we load it", id)
	require.Equal(t, peerAccount{Owner: want.Owner, Balance: want.Balance, SequenceNumber: version, Version: version},
		peer.load(id), "account %s as the peer loads it", id)

	records, events := ours.records(id), peer.events(id)
	require.Len(t, records, int(version))
	require.Len(t, events, int(version))
	replayed := Account{}
	for i, record := range records {
		name, err := typeInPayload(record)
		require.NoError(t, err)
		assert.Equal(t, name, events[i].Type)
		event, err := Accounts.Decode(name, record.Payload)
		require.NoError(t, err)
		switch event := event.(type) {
		case Opened:
			assert.Equal(t, event.Owner, events[i].Owner)
		case Deposited:
			assert.Equal(t, event.Amount, events[i].Amount)
		}
		if record.CommitID != "" {
			assert.Equal(t, record.EventID, events[i].ID, "the id of an event of ours")
		}
		event.Apply(&replayed)
	}
	require.Equal(t, want, replayed, "account %s from its events alone", id)
}

// createDocumentTables creates tables exactly as in the schema document.
func createDocumentTables(t *testing.T, client *dynamodb.Client, config journal.Config) {
	t.Helper()
	for table, index := range map[string]string{
		config.Tables.Journal: config.Classic.Indexes.JournalAggregate, config.Tables.Snapshot: config.Classic.Indexes.SnapshotAggregate,
	} {
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("pkey"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("skey"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("aid"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("ser_nr"), AttributeType: types.ScalarAttributeTypeN},
			},
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("pkey"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("skey"), KeyType: types.KeyTypeRange},
			},
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
				IndexName: &index,
				KeySchema: []types.KeySchemaElement{
					{AttributeName: aws.String("aid"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("ser_nr"), KeyType: types.KeyTypeRange},
				},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}},
		})
		require.NoError(t, err)
	}
}

// copyRows copies the rows of the schema, without Millrace's descriptor, and renames the sequence
// number to ser_nr.
func copyRows(t *testing.T, client *dynamodb.Client, from, to string) {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &from})
	require.NoError(t, err)
	require.Empty(t, out.LastEvaluatedKey)
	for _, row := range out.Items {
		if row["aid"] == nil {
			continue
		}
		row["ser_nr"] = row["seq_nr"]
		delete(row, "seq_nr")
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &to, Item: row})
		require.NoError(t, err)
	}
}
