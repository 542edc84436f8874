package journal_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestCreateMayBeCalledAgain(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 1)

		_ = testjournal.New(t, s.client, s.Config())
		head := mustHead(t, s, user("1"))
		assert.EqualValues(t, 1, head.Version, "what was there is still there")
	})
}

func TestCreateTurnsOnTheTimeToLiveOfRestoredTables(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		expiring := []string{s.Config().Tables.Journal, s.Config().Tables.Snapshot}
		for _, table := range expiring { // DynamoDB restores tables without it
			_, err := s.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
				TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(false)},
			})
			require.NoError(t, err)
		}
		require.NoError(t, journal.MarkRestored(t.Context(), s.client, s.Config()))

		require.NoError(t, journal.Create(t.Context(), s.client, s.Config()))

		for _, table := range expiring {
			out, err := s.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
			require.NoError(t, err)
			assert.Equal(t, types.TimeToLiveStatusEnabled, out.TimeToLiveDescription.TimeToLiveStatus, table)
		}
	})
}

func TestCreateMayBeCalledByManyAtOnceWhileTheFirstOfThemWritesAlready(t *testing.T) {
	t.Parallel()
	client := database(t)
	for range 5 {
		config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if !assert.NoError(t, journal.Create(t.Context(), client, config)) {
					return
				}
				j, err := journal.Open(t.Context(), client, config)
				if assert.NoError(t, err) {
					_, err = j.Internal().Append(t.Context(), storage.Commit{Aggregate: user(string(rune('a' + i))), Events: events(1, 1)})
					assert.NoError(t, err)
				}
			}()
		}
		wg.Wait()
	}
}

func TestCreateIsNotMisledByADescriptorThatAnotherProcessStoresMeanwhile(t *testing.T) {
	t.Parallel()
	client := database(t)
	config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	meddled := &meddler{Client: client}
	meddled.putItem = func(_ int, _ *dynamodb.PutItemInput, send func() (*dynamodb.PutItemOutput, error)) (*dynamodb.PutItemOutput, error) {
		assert.NoError(t, journal.Create(t.Context(), client, config))
		return send()
	}

	assert.NoError(t, journal.Create(t.Context(), meddled, config))
}

func TestCreateOfTwoProcessesThatDisagreeFailsForTheSecond(t *testing.T) {
	t.Parallel()
	client := database(t)
	config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	other := config
	other.Shards = 8
	meddled := &meddler{Client: client}
	meddled.putItem = func(_ int, _ *dynamodb.PutItemInput, send func() (*dynamodb.PutItemOutput, error)) (*dynamodb.PutItemOutput, error) {
		assert.NoError(t, journal.Create(t.Context(), client, other))
		return send()
	}

	err := journal.Create(t.Context(), meddled, config)

	require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
	assert.ErrorContains(t, err, "made with shard count 8, the config says 4")
}

func TestCreateGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	interrupted := errors.New("interrupted")
	for name, meddle := range map[string]func(*meddler){
		"between two tables": func(m *meddler) {
			m.create = func(call int, _ *dynamodb.CreateTableInput, send func() (*dynamodb.CreateTableOutput, error)) (*dynamodb.CreateTableOutput, error) {
				if call == 3 {
					return nil, interrupted
				}
				return send()
			}
		},
		"between tables and descriptor": func(m *meddler) {
			m.putItem = func(int, *dynamodb.PutItemInput, func() (*dynamodb.PutItemOutput, error)) (*dynamodb.PutItemOutput, error) {
				return nil, interrupted
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := database(t)
			config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
			meddled := &meddler{Client: client}
			meddle(meddled)
			require.ErrorIs(t, journal.Create(t.Context(), meddled, config), interrupted)

			require.NoError(t, journal.Create(t.Context(), client, config))

			_, err := journal.Open(t.Context(), client, config)
			assert.NoError(t, err)
		})
	}
}

func TestCreateLeavesTablesOfSomebodyElseAlone(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c := s.Config()
		s.write(t, user("1"), 1, 1)
		s.remove(t, c.Tables.Journal, s.key("millrace", "descriptor"))

		err := journal.Create(t.Context(), s.client, c)
		require.ErrorIs(t, err, journal.ErrNoDescriptor)
		assert.ErrorContains(t, err, c.Tables.Journal)
		assert.ErrorContains(t, err, "journal.Adopt")

		s.remove(t, c.Tables.Journal, s.keyOf(user("1"), 1))
		err = journal.Create(t.Context(), s.client, c)
		require.ErrorIs(t, err, journal.ErrNoDescriptor, "heads alone are somebody's too")
		assert.ErrorContains(t, err, c.Tables.Snapshot)

		assert.Empty(t, s.scan(t, c.Tables.Journal), "no descriptor is stored")
	})
}

func TestCreateRefusesExistingTablesOfAnotherShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		other journal.Config // with which the tables were made
		want  any
		text  string
	}{
		"other keys": {
			journal.Config{Layout: journal.Classic, Shards: 4, Classic: journal.ClassicOptions{Attributes: journal.Attributes{SortKey: "sort"}}},
			new(*journal.DescriptorMismatchError), "keys (pkey S, sort S), the config says (pkey S, skey S)",
		},
		"other index keys": {
			journal.Config{Layout: journal.Classic, Shards: 4, Classic: journal.ClassicOptions{Attributes: journal.Attributes{SequenceNumber: "ser_nr"}}},
			new(*journal.DescriptorMismatchError), "(aid S, ser_nr N), the config says (aid S, seq_nr N)",
		},
		"other index names": {
			journal.Config{Layout: journal.Classic, Shards: 4, Classic: journal.ClassicOptions{Indexes: journal.Indexes{JournalTail: "by-time"}}},
			journal.ErrTableMissing, `no index "journal-tail-index": add it with keys (pkey S, occurred_at N)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := database(t)
			other := ownTables(c.other)
			require.NoError(t, journal.Create(t.Context(), client, other))

			err := journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 4, Tables: other.Tables})

			requireKind(t, err, c.want)
			assert.ErrorContains(t, err, c.text)
		})
	}
}

func TestCreateRefusesConfigsThatCannotWork(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	classic := func(given journal.ClassicOptions) journal.Config {
		return journal.Config{Layout: journal.Classic, Shards: 1, Classic: given}
	}
	for name, c := range map[string]struct {
		client journal.Client
		config journal.Config
		text   string
	}{
		"no client":          {nil, journal.Config{Layout: journal.Classic, Shards: 4}, "client is nil: pass a *dynamodb.Client"},
		"a nil client":       {(*dynamodb.Client)(nil), journal.Config{Layout: journal.Classic, Shards: 4}, "client is nil: pass a *dynamodb.Client"},
		"no layout":          {client, journal.Config{Shards: 4}, "Layout is empty, and it can never change: take journal.Packed for a new application"},
		"zero shards":        {client, journal.Config{Layout: journal.Classic}, "Shards is 0: choose the number of logical shards, 1 to 65536"},
		"negative shards":    {client, journal.Config{Layout: journal.Classic, Shards: -1}, "Shards -1 is not between 1 and 65536"},
		"too many shards":    {client, journal.Config{Layout: journal.Classic, Shards: 65_537}, "Shards 65537 is not between 1 and 65536"},
		"negative budget":    {client, journal.Config{Layout: journal.Classic, Shards: 1, RetryBudget: -1}, "RetryBudget is negative"},
		"a bad table name":   {client, journal.Config{Layout: journal.Classic, Shards: 1, Tables: journal.Tables{Snapshot: "s t"}}, `Tables.Snapshot "s t" is not a name of 3 to 255`},
		"a bad index name":   {client, classic(journal.ClassicOptions{Indexes: journal.Indexes{JournalTail: "x"}}), `Indexes.JournalTail "x" is not a name of 3 to 255`},
		"one table for two":  {client, journal.Config{Layout: journal.Classic, Shards: 1, Tables: journal.Tables{Snapshot: "journal"}}, `Tables.Snapshot is "journal", like Tables.Journal`},
		"one index for two":  {client, classic(journal.ClassicOptions{Indexes: journal.Indexes{JournalTail: "journal-aid-index"}}), `Indexes.JournalTail is "journal-aid-index", like`},
		"one name for two":   {client, classic(journal.ClassicOptions{Attributes: journal.Attributes{Version: "seq_nr"}}), `Attributes.Version is "seq_nr", like Classic.Attributes.SequenceNumber`},
		"a name that we use": {client, classic(journal.ClassicOptions{Attributes: journal.Attributes{Payload: "event_id"}}), `Attributes.Payload is "event_id", like the event id`},
		"the descriptor's":   {client, classic(journal.ClassicOptions{Attributes: journal.Attributes{SortKey: "millrace_shards"}}), `like the descriptor`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := journal.Create(t.Context(), c.client, c.config)

			var config *journal.ConfigError
			require.ErrorAs(t, err, new(*journal.ConfigError))
			require.ErrorAs(t, err, &config)
			assert.ErrorContains(t, err, c.text)
			if name == "no layout" {
				return // Adopt needs none
			}
			assert.ErrorAs(t, journal.Adopt(t.Context(), c.client, c.config), new(*journal.ConfigError))
		})
	}
	out, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	assert.Empty(t, out.TableNames)
}

func TestCreateMakesTablesAndIndexesOfAskedThroughput(t *testing.T) {
	t.Parallel()
	client := database(t)
	config := ownTables(journal.Config{
		Layout: journal.Classic, Shards: 4,
		Throughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(7), WriteCapacityUnits: aws.Int64(9)},
	})
	require.NoError(t, journal.Create(t.Context(), client, config))

	indexes := 0
	for _, table := range []string{config.Tables.Journal, config.Tables.Snapshot, config.Tables.Checkpoint} {
		out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		require.NoError(t, err)
		given := []*types.ProvisionedThroughputDescription{out.Table.ProvisionedThroughput}
		for _, index := range out.Table.GlobalSecondaryIndexes {
			given = append(given, index.ProvisionedThroughput)
			indexes++
		}
		for _, g := range given {
			assert.EqualValues(t, 7, *g.ReadCapacityUnits)
			assert.EqualValues(t, 9, *g.WriteCapacityUnits)
		}
	}
	assert.Equal(t, 3, indexes)
}

// DynamoDB creates tables within seconds, DynamoDB Local immediately. So this test simulates the
// states in between.
func TestCreateWaitsUntilTablesAndIndexesAreActive(t *testing.T) {
	t.Parallel()
	config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	meddled := &meddler{Client: database(t)}
	seen := map[string]int{}
	meddled.describe = func(_ int, in *dynamodb.DescribeTableInput, send func() (*dynamodb.DescribeTableOutput, error)) (*dynamodb.DescribeTableOutput, error) {
		out, err := send()
		if err != nil {
			return out, err
		}
		seen[*in.TableName]++
		switch seen[*in.TableName] {
		case 1: // DescribeTable is eventually consistent
			return nil, &types.ResourceNotFoundException{Message: aws.String("not yet")}
		case 2:
			out.Table.TableStatus = types.TableStatusCreating
		case 3:
			for i := range out.Table.GlobalSecondaryIndexes {
				out.Table.GlobalSecondaryIndexes[i].IndexStatus = types.IndexStatusCreating
			}
		}
		return out, nil
	}

	require.NoError(t, journal.Create(t.Context(), meddled, config))

	assert.Equal(t, map[string]int{config.Tables.Journal: 4, config.Tables.Snapshot: 4, config.Tables.Checkpoint: 3}, seen,
		"descriptions until all was active")
}

func TestCreateStopsWaitingWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	meddled := &meddler{Client: database(t)}
	meddled.describe = func(call int, _ *dynamodb.DescribeTableInput, send func() (*dynamodb.DescribeTableOutput, error)) (*dynamodb.DescribeTableOutput, error) {
		out, err := send()
		if err == nil {
			out.Table.TableStatus = types.TableStatusCreating
		}
		if call == 3 {
			cancel()
		}
		return out, err
	}

	err := journal.Create(ctx, meddled, ownTables(journal.Config{Layout: journal.Classic, Shards: 4}))

	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, `create table "journal-`)
}
