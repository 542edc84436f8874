package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// packedTables are in the same database as the tables of the classic layout.
var packedTables = journal.Tables{Journal: "packed-journal", Snapshot: "packed-snapshot", Checkpoint: "packed-checkpoint"}

// inPacked opens a journal in the packed layout, and creates its tables if there are none.
func (b *bench) inPacked(ctx context.Context) (*bench, error) {
	config := journal.Config{Shards: 16, Layout: journal.Packed, Tables: packedTables}
	if err := journal.Create(ctx, b.client, config); err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, b.client, config)
	return &bench{client: b.client, accessKey: b.accessKey, j: j, pairs: b.pairs, many: b.many}, err
}

// packedCommit compares Save of n events in the packed layout with the bare PutItem of the same
// bytes. Save knows the version, as after a load or an earlier Save.
func (b *bench) packedCommit(ctx context.Context, name string, n int) error {
	b, err := b.inPacked(ctx)
	if err != nil {
		return err
	}
	save, err := b.saver(ctx, name, "ours", eventBytes, n)
	if err != nil {
		return err
	}
	bare := b.barePacked(name)
	list := events(n, eventBytes)
	return alternate(name, b.pairs, cost,
		func(int) (time.Duration, error) { return timed(func() error { return bare.commit(ctx, list) }) },
		func(int) (time.Duration, error) { return timed(save) },
	)
}

// barePacked returns a writer for an aggregate of that type.
func (b *bench) barePacked(aggregateType string) *barePacked {
	id := aggregate.ID{Type: aggregateType, Value: "bare"}
	return &barePacked{client: b.client, id: id, tail: aggregateType + "/" + strconv.Itoa(b.j.Internal().Shard(id)), version: 1}
}

// packedVersusClassic compares Save of one event in the classic layout with the same in the packed
// layout.
func (b *bench) packedVersusClassic(ctx context.Context) error {
	const name = "packed-vs-classic"
	p, err := b.inPacked(ctx)
	if err != nil {
		return err
	}
	classic, err := b.saver(ctx, name, "x", eventBytes, 1)
	if err != nil {
		return err
	}
	packed, err := p.saver(ctx, name, "x", eventBytes, 1)
	if err != nil {
		return err
	}
	return alternate(name, b.pairs, speed,
		func(int) (time.Duration, error) { return timed(classic) },
		func(int) (time.Duration, error) { return timed(packed) },
	)
}

// saver creates an aggregate, and returns a function that saves n more events of that size.
func (b *bench) saver(ctx context.Context, aggregateType, id string, bytes, n int) (save func() error, err error) {
	repo, err := repository.New(b.j, define(aggregateType), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return nil, err
	}
	acc, err := repo.NewAggregate(id)
	if err == nil {
		acc, err = repo.Save(ctx, acc, events(1, eventBytes))
	}
	list := events(n, bytes)
	return func() (err error) {
		acc, err = repo.Save(ctx, acc, list)
		return err
	}, err
}

// packedLoad compares a full replay of 1,500 events of 1 KB in the packed layout with the same
// reads: of the row of the snapshot, and of the items. Both decode the events.
func (b *bench) packedLoad(ctx context.Context) error {
	const name, count = "packed-load1500", 1500
	b, err := b.inPacked(ctx)
	if err != nil {
		return err
	}
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	if err := fill(ctx, repo, "x", count, 1000); err != nil {
		return err
	}
	return alternate(name, 5*b.many, cost,
		func(int) (time.Duration, error) {
			return timed(func() error {
				state, n, err := barePackedLoad(ctx, b.client, aggregate.ID{Type: name, Value: "x"})
				return errors.Join(err, expect(n, count), expect(state.Balance, count))
			})
		},
		func(int) (time.Duration, error) {
			return timed(func() error {
				acc, err := repo.Load(ctx, "x")
				return errors.Join(err, expect(int(acc.Version), count), expect(acc.State.Balance, count))
			})
		},
	)
}

// packedTail measures a new group that reads 100 aggregates of 200 events in the packed layout, up
// to the last ack. The commits have 1 to 8 events. It is compared with paged queries of the same
// index, with the same reads by key and the same concurrency. The index contains the events of
// commits of up to three.
func (b *bench) packedTail(ctx context.Context) error {
	size := 0
	return b.packedTailOf(ctx, "packed-tail", func() int {
		size = size%8 + 1
		return size
	})
}

// packedTailLarge measures the same with commits of the maximum size.
func (b *bench) packedTailLarge(ctx context.Context) error {
	return b.packedTailOf(ctx, "packed-tail-large", func() int { return storage.MaxEvents })
}

func (b *bench) packedTailOf(ctx context.Context, name string, size func() int) error {
	const aggregates, each = 100, 200
	b, err := b.inPacked(ctx)
	if err != nil {
		return err
	}
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	for i := range aggregates {
		acc, err := repo.NewAggregate(fmt.Sprint("a", i))
		for left := each; left > 0 && err == nil; left = each - int(acc.Version) {
			acc, err = repo.Save(ctx, acc, events(min(left, size()), eventBytes))
		}
		if err != nil {
			return err
		}
	}
	return alternate(name, b.many, speed,
		func(int) (time.Duration, error) {
			return timed(func() error { return b.packedTailBare(ctx, name, aggregates*each) })
		},
		func(int) (time.Duration, error) {
			r, err := b.read(ctx, name, aggregates*each, nil)
			return r.acked, err
		},
	)
}

func (b *bench) packedTailBare(ctx context.Context, topic string, want int) error {
	var readers sync.WaitGroup
	counts, errs := make([]int, b.j.Shards()), make([]error, b.j.Shards())
	for shard := range b.j.Shards() {
		readers.Add(1)
		go func() {
			defer readers.Done()
			counts[shard], errs[shard] = barePackedTail(ctx, b.client, topic+"/"+strconv.Itoa(shard))
		}()
	}
	readers.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return errors.Join(errors.Join(errs...), expect(sum, want))
}

// barePacked writes the same bytes as the packed layout, directly with the SDK.
type barePacked struct {
	client  *dynamodb.Client
	id      aggregate.ID
	tail    string
	version int
}

type packedEvent struct {
	_        struct{} `cbor:",toarray"`
	Type     string
	Payload  []byte
	Metadata [][]byte
	ID       any
	Millis   *int64
	Encoding string
}

func (w *barePacked) commit(ctx context.Context, list aggregate.Events[account]) error {
	packed := make([]packedEvent, len(list))
	for i, e := range list {
		payload, err := json.Marshal(e)
		if err != nil {
			return err
		}
		packed[i] = packedEvent{Type: e.EventType(), Payload: payload}
	}
	joined, err := cbor.Marshal(packed)
	if err != nil {
		return err
	}
	place := "e"
	if len(joined) > 900 { // the item has more than 1 KB
		place = "E"
	}
	commitID := uuid.New()
	_, err = w.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &packedTables.Journal,
		Item: item{
			"pkey": text(w.id.Type + "/" + w.id.Value), "skey": number(w.version + 1), "c": &types.AttributeValueMemberB{Value: commitID[:]},
			"n": number(len(list)), "t": number(int(time.Now().UnixMilli())), "p": text(w.tail), place: &types.AttributeValueMemberB{Value: joined},
		},
		ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames: map[string]string{"#pk": "pkey"},
	})
	if err == nil {
		w.version += len(list)
	}
	return err
}

var zstdReader = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil)
	if err != nil {
		panic(err) // there are no options
	}
	return d
}()

func eventsOf(it item) (events []packedEvent, err error) {
	stored, ok := it["e"].(*types.AttributeValueMemberB)
	if !ok {
		stored, ok = it["E"].(*types.AttributeValueMemberB)
	}
	if !ok {
		return nil, errors.New("an item has no events")
	}
	plain := stored.Value
	if bytes.HasPrefix(plain, []byte{0x28, 0xB5, 0x2F, 0xFD}) { // a frame of zstd
		if plain, err = zstdReader.DecodeAll(plain, nil); err != nil {
			return nil, err
		}
	}
	return events, cbor.Unmarshal(plain, &events)
}

// barePackedLoad reads the items of an aggregate with a strongly consistent query, and decodes and
// applies each event.
func barePackedLoad(ctx context.Context, client *dynamodb.Client, id aggregate.ID) (state account, n int, err error) {
	partition := text(id.Type + "/" + id.Value)
	if _, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &packedTables.Snapshot, Key: item{"pkey": partition, "skey": number(0)}, ConsistentRead: aws.Bool(true),
	}); err != nil {
		return state, 0, err
	}
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: &packedTables.Journal, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#pk = :pk AND #sk >= :from"),
		ExpressionAttributeNames:  map[string]string{"#pk": "pkey", "#sk": "skey"},
		ExpressionAttributeValues: item{":pk": partition, ":from": number(0)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return state, n, err
		}
		for _, it := range page.Items {
			stored, err := eventsOf(it)
			if err != nil {
				return state, n, err
			}
			for _, event := range stored {
				var e deposited
				if err := json.Unmarshal(event.Payload, &e); err != nil {
					return state, n, err
				}
				e.Apply(&state)
				n++
			}
		}
	}
	return state, n, nil
}

// barePackedTail reads a partition of the tail index to its end, and by key the items whose events
// are not in the index. It returns the number of events.
func barePackedTail(ctx context.Context, client *dynamodb.Client, partition string) (n int, err error) {
	const keysAtOnce = 100
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: &packedTables.Journal, IndexName: aws.String("journal-tail-index"),
		KeyConditionExpression:    aws.String("#p = :p AND #t >= :t"),
		ExpressionAttributeNames:  map[string]string{"#p": "p", "#t": "t"},
		ExpressionAttributeValues: item{":p": text(partition), ":t": number(0)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, err
		}
		var keys []item
		for _, it := range page.Items {
			if it["e"] == nil {
				keys = append(keys, item{"pkey": it["pkey"], "skey": it["skey"]})
				continue
			}
			stored, err := eventsOf(it)
			if err != nil {
				return n, err
			}
			n += len(stored)
		}
		for len(keys) > 0 {
			some := keys[:min(len(keys), keysAtOnce)]
			out, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{packedTables.Journal: {Keys: some}},
			})
			if err != nil {
				return n, err
			}
			for _, it := range out.Responses[packedTables.Journal] {
				stored, err := eventsOf(it)
				if err != nil {
					return n, err
				}
				n += len(stored)
			}
			keys = append(out.UnprocessedKeys[packedTables.Journal].Keys, keys[len(some):]...)
		}
	}
	return n, nil
}
