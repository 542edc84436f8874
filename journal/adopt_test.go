package journal_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// document is the config for tables that follow the schema document exactly. The document names the
// attribute of the sequence number ser_nr.
var document = journal.Config{Layout: journal.Classic, Shards: 16, Classic: journal.ClassicOptions{Attributes: journal.Attributes{SequenceNumber: "ser_nr"}}}

// foreignTables creates a journal and a snapshot table like an application of the
// event-store-adapter family, with the given indexes on the journal.
func foreignTables(t *testing.T, client *dynamodb.Client, c journal.Config, indexes ...types.GlobalSecondaryIndex) {
	t.Helper()
	for table, indexes := range map[string][]types.GlobalSecondaryIndex{
		c.Tables.Journal:  indexes,
		c.Tables.Snapshot: {index("snapshot-aid-index", "aid", "ser_nr", types.ProjectionTypeAll)},
	} {
		kinds := map[string]types.ScalarAttributeType{"pkey": "S", "skey": "S"}
		for _, x := range indexes {
			for _, k := range x.KeySchema {
				kinds[*k.AttributeName] = map[string]types.ScalarAttributeType{"pkey": "S", "aid": "S", "ser_nr": "N", "occurred_at": "N"}[*k.AttributeName]
			}
		}
		var attributes []types.AttributeDefinition
		for name, kind := range kinds {
			attributes = append(attributes, types.AttributeDefinition{AttributeName: &name, AttributeType: kind})
		}
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &table, AttributeDefinitions: attributes, KeySchema: keys("pkey", "skey"),
			BillingMode: types.BillingModePayPerRequest, GlobalSecondaryIndexes: indexes,
		})
		require.NoError(t, err)
	}
}

func keys(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
}

func index(name, hash, sort string, projection types.ProjectionType) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{IndexName: &name, KeySchema: keys(hash, sort), Projection: &types.Projection{ProjectionType: projection}}
}

var (
	aidIndex  = index("journal-aid-index", "aid", "ser_nr", types.ProjectionTypeAll)
	tailIndex = index("journal-tail-index", "pkey", "occurred_at", types.ProjectionTypeAll)
)

// foreignAggregate writes an aggregate of n events like the Go member of the family.
func foreignAggregate(t *testing.T, client *dynamodb.Client, c journal.Config, value string, n int) {
	t.Helper()
	id, partition := user(value), storage.ShardKey("user-account", resolver.FNV1a.Shard(user(value), 16))
	put := func(table string, n int, rest item) {
		it := item{
			"pkey": text(partition), "skey": text(fmt.Sprintf("%s-%d", id, n)), "aid": text(id.String()), "ser_nr": number(int64(n)),
			"payload": binary(fmt.Sprint(n)),
		}
		maps.Copy(it, rest)
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
		require.NoError(t, err)
	}
	for i := 1; i <= n; i++ {
		put(c.Tables.Journal, i, item{"occurred_at": number(1_600_000_000_000)})
	}
	head := item{"version": number(int64(n)), "ttl": number(0), "payload": binary("state")}
	put(c.Tables.Snapshot, 0, head)
	put(c.Tables.Snapshot, n, head) // the redundant snapshot
}

func TestAnAdoptedJournalGoesOnWhereTheOtherApplicationStopped(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(document)
	foreignTables(t, client, config, aidIndex, tailIndex)
	for i := range 20 {
		foreignAggregate(t, client, config, fmt.Sprint(i), 12)
	}
	_, err := journal.Open(t.Context(), client, config)
	require.ErrorIs(t, err, journal.ErrNoDescriptor, "nothing is taken over by accident")
	require.ErrorIs(t, journal.Create(t.Context(), client, config), journal.ErrNoDescriptor)

	require.NoError(t, journal.Adopt(t.Context(), client, config))
	require.NoError(t, journal.Adopt(t.Context(), client, config), "it may be called again")

	j := testjournal.Open(t, client, config)
	head := mustHead(t, j, user("7"))
	assert.Equal(t, journal.Head{Aggregate: user("7"), Version: 12, Snapshot: &journal.Snapshot{Payload: []byte("state")}}, head)
	testjournal.Append(t, j, storage.Commit{Aggregate: user("7"), Expected: 12, Events: events(13, 1)})
	records, err := read(t, j.Internal(), user("7"), 1, 13)
	require.NoError(t, err)
	requireNumbers(t, records, 1, 13)
	page, err := j.Internal().TailShard(t.Context(), storage.TailQuery{AggregateType: "user-account", Shard: j.Internal().Shard(user("7"))})
	require.NoError(t, err)
	assert.Empty(t, page.Corrupt)
	assert.NotEmpty(t, page.Records)
}

func TestAdoptRefusesAWrongResolverOrShardCount(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(document)
	foreignTables(t, client, config, aidIndex, tailIndex)
	for i := range 40 {
		foreignAggregate(t, client, config, fmt.Sprint(i), 1)
	}
	for name, change := range map[string]func(*journal.Config){
		// Half of the shards look right.
		"half the shards": func(c *journal.Config) { c.Shards = 8 },
		"one shard less":  func(c *journal.Config) { c.Shards = 15 },
		"more shards":     func(c *journal.Config) { c.Shards = 64 },
		"another hash":    func(c *journal.Config) { c.Classic.Resolver = shifted{} },
	} {
		wrong := config
		change(&wrong)

		err := journal.Adopt(t.Context(), client, wrong)

		var mismatch *journal.DescriptorMismatchError
		require.ErrorAs(t, err, new(*journal.DescriptorMismatchError), name)
		require.ErrorAs(t, err, &mismatch, name)
		assert.ErrorContains(t, err, "was made with aggregate user-account-", name)
		assert.ErrorContains(t, err, fmt.Sprintf("%d shards", wrong.Shards), name)
	}
	_, err := journal.Open(t.Context(), client, config)
	assert.ErrorIs(t, err, journal.ErrNoDescriptor, "nothing was stored")
}

// A partition with more rows than a page of a scan must not hide the others.
func TestAdoptLooksAtAllSnapshots(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(document)
	foreignTables(t, client, config, aidIndex, tailIndex)
	// These aggregates are in shards below 8, which look right with 8 shards and with 16.
	for _, value := range []string{"2", "4", "5", "7", "8"} {
		foreignAggregate(t, client, config, value, 1)
	}
	foreignAggregate(t, client, config, "1", 1) // in shard 12
	meddled := &meddler{Client: client}
	meddled.scan = func(_ int, in *dynamodb.ScanInput, send func() (*dynamodb.ScanOutput, error)) (*dynamodb.ScanOutput, error) {
		in.Limit = aws.Int32(1)
		return send()
	}
	wrong := config
	wrong.Shards = 8

	assert.ErrorAs(t, journal.Adopt(t.Context(), meddled, wrong), new(*journal.DescriptorMismatchError))
	assert.NoError(t, journal.Adopt(t.Context(), meddled, config))
}

// The other program reserves less room for sequence numbers.
func TestAdoptRefusesAnIDThatIsTooLong(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(document)
	foreignTables(t, client, config, aidIndex, tailIndex)
	fits := aggregate.MaxIDBytes - len("user-account-")
	foreignAggregate(t, client, config, strings.Repeat("x", fits), 1)
	require.NoError(t, journal.Adopt(t.Context(), client, config))

	foreignAggregate(t, client, config, strings.Repeat("y", fits+1), 1)
	err := journal.Adopt(t.Context(), client, config)
	var invalid *aggregate.InvalidIDError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, user(strings.Repeat("y", fits+1)), invalid.ID)

	// It can also be written later.
	j := testjournal.Open(t, client, config)
	var corrupt *journal.CorruptItemError
	for _, err = range j.Heads(t.Context(), journal.HeadsQuery{AggregateType: "user-account"}) {
		if errors.As(err, &corrupt) {
			break
		}
	}
	require.ErrorContains(t, corrupt, "use a shorter id")
	assert.NotContains(t, corrupt.Error(), "backup")
}

// Java's absolute value of the hash -2^31 is negative, and so is its remainder by 7.
func TestAdoptReportsAnAggregateThatJavaPutIntoANegativePartition(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(document)
	config.Classic.Resolver, config.Shards = resolver.JavaHash, 7
	foreignTables(t, client, config, aidIndex, tailIndex)
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &config.Tables.Snapshot, Item: item{
		"pkey": text("user-account--2"), "skey": text("user-account-polygenelubricants-0"),
		"aid": text("user-account-polygenelubricants"), "version": number(1), "payload": binary("state"),
	}})
	require.NoError(t, err)

	err = journal.Adopt(t.Context(), client, config)

	require.ErrorAs(t, err, new(*journal.CorruptItemError))
	assert.ErrorContains(t, err, `item "user-account--2" / "user-account-polygenelubricants-0"`)
}

// shifted is a resolver that shifts every aggregate by one shard.
type shifted struct{}

func (shifted) Name() string { return "shifted" }
func (shifted) Shard(id aggregate.ID, shards int) int {
	return (resolver.FNV1a.Shard(id, shards) + 1) % shards
}

func TestAdoptRefusesTablesThatLackSomething(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make   func(t *testing.T, client *dynamodb.Client, config journal.Config)
		number string // the name of its attribute in the config
		want   any
		text   string
	}{
		"no tables": {func(*testing.T, *dynamodb.Client, journal.Config) {}, "ser_nr", journal.ErrTableMissing, "journal.Create creates it"},
		"no tail index": {
			func(t *testing.T, client *dynamodb.Client, config journal.Config) {
				foreignTables(t, client, config, aidIndex)
			}, "ser_nr",
			journal.ErrTableMissing, `has no index "journal-tail-index": add it with keys (pkey S, occurred_at N), projecting ALL`,
		},
		"no aggregate index": {
			func(t *testing.T, client *dynamodb.Client, config journal.Config) {
				foreignTables(t, client, config, tailIndex)
			}, "ser_nr",
			journal.ErrTableMissing, `no index "journal-aid-index"`,
		},
		"an index of keys only": {
			func(t *testing.T, client *dynamodb.Client, config journal.Config) {
				foreignTables(t, client, config, aidIndex, index("journal-tail-index", "pkey", "occurred_at", types.ProjectionTypeKeysOnly))
			}, "ser_nr",
			new(*journal.DescriptorMismatchError), "(pkey S, occurred_at N) projecting KEYS_ONLY, the config says (pkey S, occurred_at N) projecting ALL",
		},
		"another name of the number": {
			func(t *testing.T, client *dynamodb.Client, config journal.Config) {
				foreignTables(t, client, config, aidIndex, tailIndex)
			}, "seq_nr",
			new(*journal.DescriptorMismatchError), "(aid S, ser_nr N), the config says (aid S, seq_nr N)",
		},
		"a snapshot that names no aggregate": {
			func(t *testing.T, client *dynamodb.Client, config journal.Config) {
				foreignTables(t, client, config, aidIndex, tailIndex)
				_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: &config.Tables.Snapshot, Item: item{"pkey": text("user-account-1"), "skey": text("what")},
				})
				require.NoError(t, err)
			}, "ser_nr",
			new(*journal.CorruptItemError), `item "user-account-1" / "what" of table "snapshot-`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, config := database(t), ownTables(document)
			c.make(t, client, config)
			config.Classic.Attributes.SequenceNumber = c.number

			err := journal.Adopt(t.Context(), client, config)

			requireKind(t, err, c.want)
			assert.ErrorContains(t, err, c.text)
			_, err = journal.Open(t.Context(), client, config)
			assert.Error(t, err, "nothing was stored")
		})
	}
}
