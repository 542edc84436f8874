package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// dated writes an aggregate whose events have times of another program.
func dated(t *testing.T, client *dynamodb.Client, c journal.Config, value string, times ...types.AttributeValue) {
	t.Helper()
	foreignAggregate(t, client, c, value, len(times))
	id := user(value)
	for i, at := range times {
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &c.Tables.Journal,
			Key: item{
				"pkey": text(storage.ShardKey("user-account", resolver.FNV1a.Shard(id, 16))), "skey": text(fmt.Sprintf("%s-%d", id, i+1)),
			},
			UpdateExpression:          aws.String("SET occurred_at = :at"),
			ExpressionAttributeValues: item{":at": at},
		})
		require.NoError(t, err)
	}
}

func TestTimesOfAnotherUnitAreReadAndWritten(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		t.Run(unit.String(), func(t *testing.T) {
			t.Parallel()
			client, config := database(t), ownTables(document)
			foreignTables(t, client, config, aidIndex, tailIndex)
			// Two events within one millisecond.
			first := begin.UnixNano() / int64(unit)
			dated(t, client, config, "7", number(first), number(first+1), number(first+2))

			require.NoError(t, journal.Adopt(t.Context(), client, config))
			require.NoError(t, journal.Adopt(t.Context(), client, config), "it may be called again")
			config.Now = func() time.Time { return begin.Add(time.Minute) }
			opened := testjournal.Open(t, client, config)
			assert.Equal(t, unit, opened.Config().Classic.OccurredAtUnit, "Adopt has found it")
			j := opened.Internal()
			receipt := mustAppend(t, j, storage.Commit{Aggregate: user("7"), Expected: 3, Events: events(4, 1)})
			assert.Equal(t, begin.Add(time.Minute), receipt.OccurredAt)

			records, err := read(t, j, user("7"), 1, 4)
			require.NoError(t, err)
			requireNumbers(t, records, 1, 4)
			for i, r := range records[:3] {
				assert.Equal(t, begin.Add(time.Duration(i)*unit).Truncate(time.Millisecond), r.OccurredAt)
			}
			assert.Equal(t, begin.Add(time.Minute), records[3].OccurredAt)

			query := storage.TailQuery{AggregateType: "user-account", Shard: j.Shard(user("7")), Limit: 1}
			var tailed []*journal.Record
			for range 4 {
				page, err := j.TailShard(t.Context(), query)
				require.NoError(t, err)
				require.Len(t, page.Records, 1, "pages go on after the last event, not after its millisecond")
				tailed, query.After = append(tailed, page.Records[0]), page.Next
			}
			requireNumbers(t, tailed, 1, 4)

			query.Limit, query.After, query.Until = 0, storage.CursorAt(begin), begin.Add(2*unit)
			page, err := j.TailShard(t.Context(), query)
			require.NoError(t, err)
			requireNumbers(t, page.Records, 1, 3)
			query.After = storage.CursorAt(begin.Add(max(unit, time.Millisecond) - 1))
			page, err = j.TailShard(t.Context(), query)
			require.NoError(t, err)
			requireNumbers(t, page.Records, 1, 3)
			query.After = storage.CursorAt(begin.Add(time.Second * 30))
			query.Until = begin.Add(time.Minute)
			page, err = j.TailShard(t.Context(), query)
			require.NoError(t, err)
			requireNumbers(t, page.Records, 4, 4)
		})
	}
}

func TestAdoptComparesTheUnitWithTheEvents(t *testing.T) {
	t.Parallel()
	millis, nanos, javascript := number(1_700_000_000_000), number(1_700_000_000_000_000_000), number(999)
	adopt := func(t *testing.T, unit time.Duration, times ...types.AttributeValue) (time.Duration, error) {
		t.Helper()
		client, config := database(t), ownTables(document)
		foreignTables(t, client, config, aidIndex, tailIndex)
		for i, at := range times {
			dated(t, client, config, fmt.Sprint(i), at)
		}
		config.Classic.OccurredAtUnit = unit
		if err := journal.Adopt(t.Context(), client, config); err != nil {
			return 0, err
		}
		config.Classic.OccurredAtUnit = 0
		j := testjournal.Open(t, client, config)
		return j.Config().Classic.OccurredAtUnit, nil
	}

	_, err := adopt(t, 0)
	require.ErrorAs(t, err, new(*journal.ConfigError), "nothing tells it")
	unit, err := adopt(t, 0, javascript)
	require.NoError(t, err)
	assert.Equal(t, time.Millisecond, unit, "times of event-store-adapter-js are in none")
	unit, err = adopt(t, 0, javascript, nanos)
	require.NoError(t, err)
	assert.Equal(t, time.Nanosecond, unit)
	unit, err = adopt(t, time.Nanosecond, millis, nanos)
	require.NoError(t, err)
	assert.Equal(t, time.Nanosecond, unit, "somebody has decided")

	_, err = adopt(t, 0, millis, nanos)
	var config *journal.ConfigError
	require.ErrorAs(t, err, &config)
	assert.ErrorContains(t, err, "nanoseconds and milliseconds")
	_, err = adopt(t, time.Millisecond, nanos)
	require.ErrorAs(t, err, &config)
	assert.ErrorContains(t, err, "is milliseconds, and events have their times in nanoseconds")
	_, err = adopt(t, time.Minute, millis)
	require.ErrorAs(t, err, &config)
}

// The index was added after events with times that it cannot contain.
func TestAdoptRefusesTimesThatAreText(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(document)
	foreignTables(t, client, config, aidIndex)
	dated(t, client, config, "1", text("2026-11-22T12:00:00Z"))
	_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &config.Tables.Journal,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pkey"), AttributeType: "S"}, {AttributeName: aws.String("occurred_at"), AttributeType: "N"},
		},
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: tailIndex.IndexName, KeySchema: tailIndex.KeySchema, Projection: tailIndex.Projection,
		}}},
	})
	require.NoError(t, err)

	err = journal.Adopt(t.Context(), client, config)

	require.ErrorAs(t, err, new(*journal.CorruptItemError))
	assert.ErrorContains(t, err, "has text in occurred_at")
	assert.ErrorContains(t, err, "user-account-1-1")
	_, err = journal.Open(t.Context(), client, config)
	assert.ErrorIs(t, err, journal.ErrNoDescriptor, "nothing was stored")
}

func TestTheDescriptorKeepsTheUnitOfTimes(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(journal.Config{Layout: journal.Classic, Shards: 1, Classic: journal.ClassicOptions{OccurredAtUnit: time.Nanosecond}})
	require.NoError(t, journal.Create(t.Context(), client, config))
	config.Classic.OccurredAtUnit = time.Millisecond
	_, err := journal.Open(t.Context(), client, config)
	require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
	assert.ErrorContains(t, err, "unit of times nanoseconds, the config says milliseconds")
}
