package journal_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

type item = map[string]types.AttributeValue

// renamed uses words that DynamoDB reserves where possible. So an expression that contains a name
// without a placeholder fails.
var renamed = journal.Config{
	Classic: journal.ClassicOptions{
		Indexes: journal.Indexes{JournalAggregate: "by-aggregate", SnapshotAggregate: "states-by-aggregate", JournalTail: "by-time"},
		Attributes: journal.Attributes{
			PartitionKey: "hash", SortKey: "range", AggregateID: "name", SequenceNumber: "ser_nr",
			Payload: "data", OccurredAt: "timestamp", Version: "size", TTL: "ttl",
		},
	},
}

// layouts are the layouts of tests for every layout.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// classics returns the configs of the classic layout, for tests in which names matter.
func classics() map[string]journal.Config {
	return map[string]journal.Config{"default names": {}, "other names": renamed}
}

// configs returns a config of each layout, by what tests call them. The classic one has other
// names. Other tests use the default names.
func configs() map[string]journal.Config {
	return map[string]journal.Config{"classic, other names": renamed, "packed": packed}
}

func database(t *testing.T) *dynamodb.Client {
	t.Helper()
	return testdb.Client(t)
}

var stores atomic.Int64

// ownTables returns a config with tables that no other test uses.
func ownTables(c journal.Config) journal.Config {
	n := stores.Add(1)
	c.Tables = journal.Tables{
		Journal: fmt.Sprintf("journal-%d", n), Snapshot: fmt.Sprintf("snapshot-%d", n), Checkpoint: fmt.Sprintf("checkpoint-%d", n),
	}
	return c
}

// store is an empty journal with its own tables.
type store struct {
	*engine.Engine
	client *dynamodb.Client
	clock  *clock
}

// Config returns the config of the journal.
func (s store) Config() journal.Config { return configOf(s.Engine) }

// configOf returns a config that opens the journal.
func configOf(j *engine.Engine) journal.Config {
	c := j.Config
	config := journal.Config{
		Tables: c.Tables, Shards: c.Shards, CommandRetention: c.CommandRetention, RetryBudget: c.RetryBudget, Now: c.Now, NewID: c.NewID,
		Layout: c.Layout, EventType: c.EventType, Encodings: c.Encodings, RequiredEncodings: c.RequiredEncodings, RequiredByType: c.RequiredByType,
	}
	if c.Layout == journal.Classic {
		config.Classic = c.ClassicOptions
	}
	return config
}

// clock stands still unless a test moves it, so all events have one time.
type clock struct{ millis atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.millis.Load()) }
func (c *clock) advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }

func setup(t *testing.T, config journal.Config) store {
	t.Helper()
	s := store{client: database(t), clock: &clock{}}
	config = ownTables(config)
	s.clock.millis.Store(1_700_000_000_000)
	config.Now = s.clock.now
	config.Shards, config.Layout = cmp.Or(config.Shards, 7), cmp.Or(config.Layout, journal.Classic)
	if config.RetryBudget == 0 {
		// On a busy machine a commit of 4 MB can take longer than the default.
		config.RetryBudget = time.Minute
	}
	j := testjournal.New(t, s.client, config)
	s.Engine = j.Internal()
	return s
}

// onClassic runs a test of a feature of the classic layout.
func onClassic(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	t.Parallel()
	test(t, setup(t, renamed))
}

// eachLayoutInFakeTime runs a test about time limits like eachLayout.
func eachLayoutInFakeTime(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	inFakeTime(t, configs(), test)
}

func inFakeTime(t *testing.T, configs map[string]journal.Config, test func(t *testing.T, s store)) {
	t.Helper()
	t.Parallel()
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { test(t, setup(t, config)) })
		})
	}
}

// through opens the journal with another client.
func (s store) through(t *testing.T, client journal.Client, change ...func(*journal.Config)) *engine.Engine {
	t.Helper()
	config := s.Config()
	for _, c := range change {
		c(&config)
	}
	j := testjournal.Open(t, client, config)
	return j.Internal()
}

// impatient makes Append give up at the first failure. Each request then has a second at most.
func impatient(c *journal.Config) { c.RetryBudget = time.Nanosecond }

func user(value string) aggregate.ID { return aggregate.ID{Type: "user-account", Value: value} }

// events makes n events with the payloads "first", "first+1" and so on.
func events(first, n int) []storage.Event {
	list := make([]storage.Event, n)
	for i := range list {
		list[i] = storage.Event{ID: fmt.Sprintf("id-%d", first+i), Type: "counted", Payload: fmt.Append(nil, first+i)}
	}
	return list
}

// noise returns bytes that do not compress.
func noise(seed, size int) []byte {
	payload := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(payload)
	return payload
}

// write appends n events in full commits, each with its number as payload.
func (s store) write(t *testing.T, id aggregate.ID, from, n int) {
	t.Helper()
	for n > 0 {
		count := min(n, storage.MaxEvents)
		mustAppend(t, s, storage.Commit{Aggregate: id, Expected: uint64(from - 1), Events: events(from, count)})
		from, n = from+count, n-count
	}
}

// mustAppend fails the test on an error, and mustHead too.
func mustAppend(t *testing.T, j interface {
	Append(ctx context.Context, c storage.Commit) (storage.Receipt, error)
}, c storage.Commit,
) storage.Receipt {
	t.Helper()
	receipt, err := j.Append(t.Context(), c)
	require.NoError(t, err)
	return receipt
}

func mustHead(t *testing.T, j interface {
	Head(ctx context.Context, id aggregate.ID) (journal.Head, error)
}, id aggregate.ID,
) journal.Head {
	t.Helper()
	head, err := j.Head(t.Context(), id)
	require.NoError(t, err)
	return head
}

// read collects the events of an aggregate that j yields.
func read(t *testing.T, j *engine.Engine, id aggregate.ID, from, to uint64) ([]*journal.Record, error) {
	t.Helper()
	var records []*journal.Record
	for r, err := range j.Events(t.Context(), id, from, to) {
		if err != nil {
			assert.Nil(t, r, "an error comes without a record")
			return records, err
		}
		records = append(records, r)
	}
	return records, nil
}

// requireNumbers requires the records from..to of write, in order and each once.
func requireNumbers(t *testing.T, records []*journal.Record, from, to int) {
	t.Helper()
	require.Len(t, records, max(to-from+1, 0))
	for i, r := range records {
		require.EqualValues(t, from+i, r.Number)
		require.Equal(t, fmt.Sprint(from+i), string(r.Payload))
	}
}

func (s store) requireNothingWritten(t *testing.T, id aggregate.ID) {
	t.Helper()
	_, err := s.Head(t.Context(), id)
	require.ErrorIs(t, err, journal.ErrNotFound, "no head")
	require.Empty(t, s.get(t, s.Config().Tables.Journal, s.keyOf(id, 1)), "no event")
}

func (s store) scan(t *testing.T, table string) []item {
	t.Helper()
	var items []item
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		items = append(items, page.Items...)
	}
	return items
}

func (s store) key(partition, sort string) item {
	a := s.Engine.Config.Attributes
	return item{a.PartitionKey: text(partition), a.SortKey: text(sort)}
}

func (s store) keyOf(id aggregate.ID, number int) item {
	if s.isPacked() {
		return s.packedKey(id, strconv.Itoa(number))
	}
	return s.key(storage.ShardKey(id.Type, s.Shard(id)), fmt.Sprintf("%s-%d", id, number))
}

// placeOf returns the key in an error.
func (s store) placeOf(err *journal.CorruptItemError) item {
	if s.isPacked() {
		a := s.Engine.Config.Attributes
		return item{a.PartitionKey: text(err.PartitionKey), a.SortKey: &types.AttributeValueMemberN{Value: err.SortKey}}
	}
	return s.key(err.PartitionKey, err.SortKey)
}

func (s store) isPacked() bool { return s.Config().Layout == journal.Packed }

// either returns the operation that a test disturbs in the store's layout.
func (s store) either(classic, packed string) string {
	if s.isPacked() {
		return packed
	}
	return classic
}

// get reads an item.
func (s store) get(t *testing.T, table string, key item) item {
	t.Helper()
	out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	return out.Item
}

// put writes an item without using the journal.
func (s store) put(t *testing.T, table string, it item) {
	t.Helper()
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	require.NoError(t, err)
}

// change overwrites attributes of an item without using the journal; nil removes one.
func (s store) change(t *testing.T, table string, key, attributes item) {
	t.Helper()
	it := s.get(t, table, key)
	require.NotEmpty(t, it)
	for name, value := range attributes {
		if it[name] = value; value == nil {
			delete(it, name)
		}
	}
	s.put(t, table, it)
}

func (s store) remove(t *testing.T, table string, key item) {
	t.Helper()
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	require.NoError(t, err)
}

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}
func binary(v string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(v)} }

func cancellable(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
