package archive_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

type item = map[string]types.AttributeValue

// otherConfig differs from the default in every setting of a journal.
var otherConfig = journal.Config{
	Shards: 3, Layout: journal.Classic, Classic: journal.ClassicOptions{
		Resolver: lastByte{},
		Indexes:  journal.Indexes{JournalAggregate: "by-aggregate", SnapshotAggregate: "states-by-aggregate", JournalTail: "by-time"},
		Attributes: journal.Attributes{
			PartitionKey: "hash", SortKey: "range", AggregateID: "name", SequenceNumber: "ser_nr",
			Payload: "data", OccurredAt: "timestamp", Version: "size", TTL: "ttl",
		},
	},
}

// packed and otherPacked correspond to the default and to otherConfig in the packed layout, which
// has fewer settings.
var (
	packed      = journal.Config{Layout: journal.Packed}
	otherPacked = journal.Config{Layout: journal.Packed, Shards: 3}
)

type lastByte struct{}

func (lastByte) Name() string { return "last-byte" }
func (lastByte) Shard(id aggregate.ID, shards int) int {
	return int(id.Value[len(id.Value)-1]) % shards
}

type store struct {
	*journal.Journal
	client *dynamodb.Client
}

// setup creates a journal with its own tables. Its clock advances with each commit.
func setup(t *testing.T, client *dynamodb.Client, config journal.Config) store {
	t.Helper()
	n := tables.Add(1)
	config.Tables = journal.Tables{
		Journal: fmt.Sprintf("journal-%d", n), Snapshot: fmt.Sprintf("snapshot-%d", n), Checkpoint: fmt.Sprintf("checkpoint-%d", n),
	}
	config.Shards, config.Layout = cmp.Or(config.Shards, 7), cmp.Or(config.Layout, journal.Classic)
	if config.RetryBudget == 0 {
		// On a busy machine a commit of 4 MB can take longer than the default.
		config.RetryBudget = time.Minute
	}
	var millis atomic.Int64
	config.Now = func() time.Time { return time.UnixMilli(1_700_000_000_000 + millis.Add(1)) }
	j := testjournal.New(t, client, config)
	return store{j, client}
}

var tables atomic.Int64

// pair returns two journals that differ in every setting.
func pair(t *testing.T) (from, to store) {
	t.Helper()
	client := testdb.Client(t)
	return setup(t, client, journal.Config{}), setup(t, client, otherConfig)
}

// eachPair runs a test for archives from each layout to the other one. The journals of a pair
// differ in every setting. TestAnArchiveMakesTheSameJournalInAnotherPlace covers pairs of the same
// layout.
func eachPair(t *testing.T, test func(t *testing.T, from, to store)) {
	t.Helper()
	pairsOf(t, test, "classic to packed", "packed to classic")
}

func pairsOf(t *testing.T, test func(t *testing.T, from, to store), names ...string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := pairOf(t, name)
			test(t, from, to)
		})
	}
}

func pairOf(t *testing.T, name string) (from, to store) {
	t.Helper()
	client := testdb.Client(t)
	return setup(t, client, pairs[name][0]), setup(t, client, pairs[name][1])
}

var pairs = map[string][2]journal.Config{
	"classic to classic": {{}, otherConfig},
	"classic to packed":  {{}, otherPacked},
	"packed to classic":  {packed, otherConfig},
	"packed to packed":   {packed, otherPacked},
}

// each runs a test for archives from each layout. Such tests are more about files than about
// tables, so they do not need DynamoDB Local.
func each(t *testing.T, test func(t *testing.T, from store)) {
	t.Helper()
	if testdb.IsLocal() {
		t.Skip("needs dynamotest, on which another phase runs it")
	}
	for name, config := range map[string]journal.Config{"classic": {}, "packed": packed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, dynamotest.New(t).Client(), config))
		})
	}
}

func (s store) isPacked() bool { return s.Config().Layout == journal.Packed }

func account(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }

// write appends n events to an aggregate that may have some already.
func (s store) write(t *testing.T, id aggregate.ID, from, n int, snapshot ...*journal.Snapshot) {
	t.Helper()
	for n > 0 {
		c := storage.Commit{Aggregate: id, Expected: uint64(from - 1)}
		for range min(n, 90) {
			c.Events = append(c.Events, storage.Event{ID: fmt.Sprintf("%s/%d", id, from), Type: "counted", Payload: fmt.Append(nil, from)})
			from, n = from+1, n-1
		}
		if n == 0 && len(snapshot) > 0 {
			c.Snapshot = snapshot[0]
		}
		testjournal.Append(t, s.Journal, c)
	}
}

// stateOf returns a snapshot of event n.
func stateOf(n int) *journal.Snapshot {
	return &journal.Snapshot{Number: uint64(n), Schema: 2, Payload: fmt.Append(nil, "state ", n)}
}

// fill writes aggregates of all kinds. The same seed writes the same ones.
func (s store) fill(t *testing.T, seed uint64, aggregates int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range aggregates {
		id := aggregate.ID{Type: []string{"account", "user-account", "a"}[r.IntN(3)], Value: fmt.Sprintf("%d-%d", r.IntN(50), i)}
		version := uint64(0)
		for range 1 + r.IntN(4) {
			c := storage.Commit{Aggregate: id, Expected: version}
			for range 1 + r.IntN([]int{2, 5, 99}[r.IntN(3)]) {
				c.Events = append(c.Events, randomEvent(r))
			}
			version += uint64(len(c.Events))
			if r.IntN(2) == 0 {
				c.Snapshot = &journal.Snapshot{Number: max(1, version-uint64(r.IntN(2))), Schema: r.Uint64N(3), Payload: randomBytes(r)}
			}
			testjournal.Append(t, s.Journal, c)
		}
		switch r.IntN(8) {
		case 0:
			require.NoError(t, s.Delete(t.Context(), id, version, journal.RemoveOptions{}))
		case 1:
			before := 1 + r.Uint64N(version+1)
			after := time.Duration(r.IntN(2)) * century
			if s.isPacked() {
				after = 0
			}
			err := s.Truncate(t.Context(), id, before, journal.RemoveOptions{After: after})
			if !errors.Is(err, journal.ErrNotCovered) {
				require.NoError(t, err)
			}
		case 2:
			if number := 1 + r.Uint64N(version); !s.isPacked() {
				s.changeEvent(t, id, number, item{"event_id": nil, "event_type": nil, "commit_id": nil})
			}
		}
	}
}

func randomEvent(r *rand.Rand) storage.Event {
	e := storage.Event{Type: "happened", Payload: randomBytes(r)}
	if r.IntN(4) > 0 {
		e.ID = fmt.Sprintf("%x", r.Uint64())
	}
	if r.IntN(2) == 0 {
		e.Metadata = aggregate.Metadata{"who": "<Ann> & \u2028\x00\"\\", "why": "", "binary": "\xff", "": "\xfe"}
	}
	if r.IntN(400) == 0 {
		e.Payload = bytes.Repeat([]byte{0xff}, 100_000)
	}
	return e
}

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(30))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// content is everything that a reader finds of an aggregate.
type content struct {
	Head   journal.Head
	Events []journal.Record
}

func (s store) contents(t *testing.T) map[aggregate.ID]content {
	t.Helper()
	all := map[aggregate.ID]content{}
	for listed, err := range s.Heads(t.Context(), journal.HeadsQuery{}) {
		require.NoError(t, err)
		head, err := s.Head(t.Context(), listed.Aggregate)
		require.NoError(t, err)
		c := content{Head: head}
		c.Head.Redundant = nil
		if c.Head.TruncatedBefore == 1 {
			c.Head.TruncatedBefore = 0 // it means the same
		}
		for r, err := range s.Events(t.Context(), head.Aggregate, max(head.TruncatedBefore, 1), head.Version) {
			require.NoError(t, err)
			c.Events = append(c.Events, *r)
			c.Events[len(c.Events)-1].WrittenAt = time.Time{} // it is the time of an import
		}
		all[head.Aggregate] = c
	}
	return all
}

// assertSame compares contents aggregate by aggregate, so that a failure shows only what differs.
func assertSame(t *testing.T, want, got map[aggregate.ID]content) {
	t.Helper()
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for id, w := range want {
		assert.Equal(t, w.Head, got[id].Head, "%s", id)
		if assert.Len(t, got[id].Events, len(w.Events), "%s", id) {
			for i, event := range w.Events {
				assert.Equal(t, event, got[id].Events[i], "%s", id)
			}
		}
	}
}

func (s store) export(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	done, err := archive.Export(t.Context(), s.Journal, &out, archive.ExportOptions{})
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), done.Bytes)
	return out.Bytes()
}

// exportWithout requires that only the given aggregates are left out, and returns the errors that
// caused this.
func (s store) exportWithout(t *testing.T, ids ...aggregate.ID) (text []byte, why []error) {
	t.Helper()
	var out bytes.Buffer
	var asked []aggregate.ID
	done, err := archive.Export(t.Context(), s.Journal, &out, archive.ExportOptions{Unreadable: func(id aggregate.ID, err error) error {
		asked, why = append(asked, id), append(why, err)
		return nil
	}})
	require.NoError(t, err)
	require.ElementsMatch(t, ids, asked)
	require.EqualValues(t, len(ids), done.LeftOut)
	return out.Bytes(), why
}

// lose removes an event without using the journal. In the packed layout it removes the whole commit
// that begins with the event.
func (s store) lose(t *testing.T, id aggregate.ID, number uint64) {
	t.Helper()
	s.remove(t, s.Config().Tables.Journal, s.eventKey(id, number))
}

func (s store) imports(t *testing.T, text []byte) archive.ImportProgress {
	t.Helper()
	done, err := archive.Import(t.Context(), s.Journal, bytes.NewReader(text), archive.ImportOptions{})
	require.NoError(t, err)
	require.EqualValues(t, len(text), done.Bytes+int64(bytes.IndexByte(text, '\n')+1)+int64(len(lastLine(text))), "all but header and total")
	return done
}

func lastLine(text []byte) []byte {
	return text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]
}

func (s store) requireSound(t *testing.T) {
	t.Helper()
	report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{})
	require.NoError(t, err)
	require.NoError(t, report.Err())
}

// eventKey returns the key of an event. In the packed layout the event must be the first of its
// commit.
func (s store) eventKey(id aggregate.ID, number uint64) item {
	if s.isPacked() {
		a := s.Internal().Config.Attributes
		return item{a.PartitionKey: text(id.Type + "/" + id.Value), a.SortKey: &types.AttributeValueMemberN{Value: fmt.Sprint(number)}}
	}
	return s.keyIn(s.Journal.Internal().Shard(id), id, fmt.Sprint(number))
}

func (s store) keyIn(shard int, id aggregate.ID, end string) item {
	a := s.Internal().Config.Attributes
	return item{a.PartitionKey: text(storage.ShardKey(id.Type, shard)), a.SortKey: text(fmt.Sprintf("%s-%s", id, end))}
}

func (s store) changeEvent(t *testing.T, id aggregate.ID, number uint64, attributes item) {
	t.Helper()
	s.change(t, s.Config().Tables.Journal, s.eventKey(id, number), attributes)
}

// changeHead overwrites attributes of a head.
func (s store) changeHead(t *testing.T, id aggregate.ID, attributes item) {
	t.Helper()
	s.change(t, s.Config().Tables.Snapshot, s.keyIn(s.Journal.Internal().Shard(id), id, "0"), attributes)
}

// change overwrites attributes without using the journal; nil removes one.
func (s store) change(t *testing.T, table string, key, attributes item) {
	t.Helper()
	out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	if out.Item == nil {
		return // truncated
	}
	for name, value := range attributes {
		if out.Item[name] = value; value == nil {
			delete(out.Item, name)
		}
	}
	_, err = s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: out.Item})
	require.NoError(t, err)
}

func (s store) remove(t *testing.T, table string, key item) {
	t.Helper()
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	require.NoError(t, err)
}

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// cancelled returns a context that has ended.
func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

type aggregateID = aggregate.ID

func (s store) item(t *testing.T, id aggregate.ID, number uint64) item {
	t.Helper()
	out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(s.Config().Tables.Journal), Key: s.eventKey(id, number), ConsistentRead: aws.Bool(true),
	})
	require.NoError(t, err)
	require.NotEmpty(t, out.Item)
	return out.Item
}

// century is longer than any test on any clock.
const century = 100 * 365 * 24 * time.Hour
