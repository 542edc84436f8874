package repository_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
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
	"github.com/millrace-dev/millrace/repository"
)

// incompressible returns a text that compression does not make smaller, always the same for a size.
func incompressible(bytes int) string { return noise()[:bytes] }

var noise = sync.OnceValue(func() string {
	text, random := make([]byte, 256<<10), rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a test draws
	for i := range text {
		text[i] = byte(' ' + random.IntN('~'-' '))
	}
	return strings.NewReplacer(`"`, "q", `\`, "b", "<", "l", ">", "g", "&", "a").Replace(string(text))
})

// Account is an aggregate whose state is copied by assignment.
type Account struct{ Balance int }

type Events = aggregate.Events[Account]

type Deposited struct{ Amount int }

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

type Withdrawn struct{ Amount int }

func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

// Noted has a payload of any size that a test needs.
type Noted struct{ Text string }

func (Noted) EventType() string { return "account.noted.v1" }
func (Noted) Apply(*Account)    {}

var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{}, Noted{})

var ErrInsufficientFunds = errors.New("insufficient funds")

func Deposit(amount int) aggregate.Decision[Account] {
	return func(Account) (aggregate.Events[Account], error) {
		return aggregate.Events[Account]{Deposited{amount}}, nil
	}
}

func Withdraw(amount int) aggregate.Decision[Account] {
	return func(a Account) (aggregate.Events[Account], error) {
		if a.Balance < amount {
			return nil, ErrInsufficientFunds
		}
		return aggregate.Events[Account]{Withdrawn{amount}}, nil
	}
}

// Basket is an aggregate whose state has a map, a slice and a pointer.
type Basket struct {
	Items  map[string]int
	Labels []string
	Coupon *string
}

type Added struct {
	Item  string
	Count int
}

func (Added) EventType() string { return "basket.added.v1" }
func (e Added) Apply(b *Basket) {
	if b.Items == nil {
		b.Items = map[string]int{}
	}
	b.Items[e.Item] += e.Count
}

type Removed struct{ Item string }

func (Removed) EventType() string { return "basket.removed.v1" }
func (e Removed) Apply(b *Basket) { delete(b.Items, e.Item) }

// Labelled stores the slice of the event in the state, and changes the slice that is there.
type Labelled struct{ Labels []string }

func (*Labelled) EventType() string { return "basket.labelled.v1" }
func (e *Labelled) Apply(b *Basket) {
	if len(b.Labels) > 0 {
		b.Labels[0] = "old"
		return
	}
	b.Labels = e.Labels
}

type CouponGiven struct{ Code *string }

func (CouponGiven) EventType() string { return "basket.coupon_given.v1" }
func (e CouponGiven) Apply(b *Basket) {
	if b.Coupon != nil {
		*b.Coupon += *e.Code
		return
	}
	b.Coupon = e.Code
}

var Baskets = aggregate.Define[Basket]("basket", Added{}, Removed{}, &Labelled{}, CouponGiven{})

func always[S any](events ...aggregate.Event[S]) aggregate.Decision[S] {
	return func(S) (aggregate.Events[S], error) { return events, nil }
}

func deposits(n int) aggregate.Events[Account] {
	return slices.Repeat(aggregate.Events[Account]{Deposited{1}}, n)
}

// patience is the RetryBudget of journals whose budget is not what a test is about, so that a slow
// machine passes too.
const patience = 2 * time.Minute

// store is a journal that only one test uses.
type store struct {
	client  *dynamodb.Client // through the proxy; sends each request once
	direct  *dynamodb.Client // not through the proxy
	proxy   *dynamotest.Proxy
	calls   *dynamotest.Recording // the requests through the proxy
	journal *journal.Journal
}

// through returns a store without a journal, for the database of a client.
func through(t *testing.T, client *dynamodb.Client) store {
	t.Helper()
	proxy := dynamotest.NewProxy(t, client)
	return store{client: proxy.Client(testdb.Once), direct: client, proxy: proxy, calls: proxy.Record()}
}

func setup(t *testing.T) store {
	t.Helper()
	return setupIn(t, journal.Classic)
}

func setupIn(t *testing.T, layout journal.Layout) store {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 4, Layout: layout}))
	return open(t, client)
}

// eachLayout runs a test with a store of each layout.
func eachLayout(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) { test(t, setupIn(t, layout)) })
}

// eachLayoutInFakeTime runs a test about time limits, or about what has a limit of a second, with a
// store of each layout.
func eachLayoutInFakeTime(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) { test(t, setupIn(t, layout)) })
	})
}

func (s store) isPacked() bool { return s.journal.Config().Layout == journal.Packed }

// commits returns the operation that writes a commit of a few small events.
func (s store) commits() string {
	if s.isPacked() {
		return "PutItem"
	}
	return "TransactWriteItems"
}

// onDynamotest returns a store, and its database so that a test can inject faults.
func onDynamotest(t *testing.T) (*dynamotest.DB, store) {
	t.Helper()
	db := dynamotest.New(t)
	return db, openOn(t, db, journal.Config{})
}

// layouts are the layouts on which tests of every layout run.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

func openOn(t *testing.T, db *dynamotest.DB, config journal.Config) store {
	t.Helper()
	config.Shards, config.Layout = 4, cmp.Or(config.Layout, journal.Classic)
	require.NoError(t, journal.Create(t.Context(), db.Client(), config))
	return through(t, db.Client()).open(t, config)
}

func (s store) key(id aggregate.ID, end string) map[string]types.AttributeValue {
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	if s.isPacked() {
		return map[string]types.AttributeValue{"pkey": text(id.Type + "/" + id.Value), "skey": &types.AttributeValueMemberN{Value: end}}
	}
	return map[string]types.AttributeValue{
		"pkey": text(storage.ShardKey(id.Type, s.journal.Internal().Shard(id))), "skey": text(id.String() + "-" + end),
	}
}

// item returns a row of an aggregate by the end of its sort key, or nil if there is none.
func (s store) item(t *testing.T, table string, id aggregate.ID, end string) map[string]types.AttributeValue {
	t.Helper()
	out, err := s.direct.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: s.key(id, end), ConsistentRead: aws.Bool(true),
	})
	require.NoError(t, err)
	return out.Item
}

// open opens a store again, as another process does.
func open(t *testing.T, client *dynamodb.Client) store {
	t.Helper()
	return through(t, client).open(t, journal.Config{})
}

// open opens the journal, and clears the recorded requests.
func (s store) open(t *testing.T, config journal.Config) store {
	t.Helper()
	if config.RetryBudget == 0 {
		config.RetryBudget = patience
	}
	s.journal = testjournal.Open(t, s.client, config)
	s.calls.Reset()
	return s
}

func (s store) accounts(t *testing.T, config repository.Config) *repository.Repository[Account] {
	t.Helper()
	return newRepository(t, s, Accounts, config)
}

func (s store) baskets(t *testing.T, config repository.Config) *repository.Repository[Basket] {
	t.Helper()
	return newRepository(t, s, Baskets, config)
}

func newRepository[S any](t *testing.T, s store, d aggregate.Definition[S], config repository.Config) *repository.Repository[S] {
	t.Helper()
	return testjournal.Repository(t, s.journal, d, config)
}

// mustExecute and the functions after it fail the test on an error.
func mustExecute[S any](
	t *testing.T, r *repository.Repository[S], id string, decide aggregate.Decision[S], options ...repository.Option,
) repository.Aggregate[S] {
	t.Helper()
	a, err := r.Execute(t.Context(), id, decide, options...)
	require.NoError(t, err)
	return a
}

func mustLoad[S any](t *testing.T, r *repository.Repository[S], id string) repository.Aggregate[S] {
	t.Helper()
	a, err := r.Load(t.Context(), id)
	require.NoError(t, err)
	return a
}

func mustLoadAtVersion[S any](t *testing.T, r *repository.Repository[S], id string, number uint64) repository.Aggregate[S] {
	t.Helper()
	a, err := r.LoadAtVersion(t.Context(), id, number)
	require.NoError(t, err)
	return a
}

func mustSave[S any](
	t *testing.T, r *repository.Repository[S], a repository.Aggregate[S], events aggregate.Events[S], options ...repository.Option,
) repository.Aggregate[S] {
	t.Helper()
	a, err := r.Save(t.Context(), a, events, options...)
	require.NoError(t, err)
	return a
}

// snapshotNumber returns the event after which the snapshot was taken, or 0 if there is none.
func (s store) snapshotNumber(t *testing.T, id aggregate.ID) uint64 {
	t.Helper()
	head, err := s.journal.Head(t.Context(), id)
	require.NoError(t, err)
	if head.Snapshot == nil && !s.journal.Internal().StateAtFirst {
		return 0
	}
	require.NotNil(t, head.Snapshot, "the head must carry a snapshot")
	return head.Snapshot.Number
}

// records returns all events of an aggregate. They must be numbered from 1 to the version of the
// head.
func (s store) records(t *testing.T, id aggregate.ID) (records []*journal.Record) {
	t.Helper()
	head, err := s.journal.Head(t.Context(), id)
	require.NoError(t, err)
	for r, err := range s.journal.Events(t.Context(), id, 1, head.Version) {
		require.NoError(t, err)
		records = append(records, r)
		require.EqualValues(t, len(records), r.Number)
	}
	require.Len(t, records, int(head.Version))
	return records
}

// bare returns an aggregate without its unexported fields, so that it can be compared.
func bare[S any](a repository.Aggregate[S]) repository.Aggregate[S] {
	return repository.Aggregate[S]{ID: a.ID, State: a.State, Version: a.Version, Repeated: a.Repeated}
}

func account(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }
func basket(value string) aggregate.ID  { return aggregate.ID{Type: "basket", Value: value} }

// peerWrites writes as a program of the event-store-adapter family does: it puts an event without
// Millrace's attributes, updates the head, and stores its own form of the state there.
func (s store) peerWrites(t *testing.T, id aggregate.ID, number uint64, event, state string) {
	t.Helper()
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	count := func(v uint64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatUint(v, 10)}
	}
	key := func(n uint64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"pkey": text(storage.ShardKey(id.Type, s.journal.Internal().Shard(id))), "skey": text(fmt.Sprintf("%s-%d", id, n)),
		}
	}
	item := key(number)
	maps.Copy(item, map[string]types.AttributeValue{
		"aid": text(id.String()), "seq_nr": count(number), "payload": text(event), "occurred_at": count(1),
	})
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: item})
	require.NoError(t, err)
	_, err = s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("snapshot"), Key: key(0),
		UpdateExpression:         aws.String("SET #p = :p, #v = :v, #n = :n"),
		ExpressionAttributeNames: map[string]string{"#p": "payload", "#v": "version", "#n": "seq_nr"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":p": &types.AttributeValueMemberB{Value: []byte(state)}, ":v": count(number), ":n": count(0),
		},
	})
	require.NoError(t, err)
}

// logger collects the errors that are logged.
type logger struct {
	watermill.NopLogger
	mu     sync.Mutex
	errors []string
}

func (l *logger) Error(msg string, err error, fields watermill.LogFields) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors = append(l.errors, fmt.Sprintf("%s: %v %v", msg, err, fields))
}

func (l *logger) assertReports(t *testing.T, parts ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if assert.Len(t, l.errors, 1, "one report") {
		for _, part := range parts {
			assert.Contains(t, l.errors[0], part)
		}
	}
}

func (l *logger) assertSilent(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Empty(t, strings.Join(l.errors, "\n"), "nothing was to be reported")
}

// typing opens the store with a function that returns the types of events without one.
func (s store) typing(t *testing.T, eventType func(*journal.Record) (string, error)) store {
	t.Helper()
	return s.open(t, journal.Config{EventType: eventType})
}

// copyFrom replaces the head of an aggregate by the head from another store.
func (s store) copyFrom(t *testing.T, other store, id aggregate.ID) {
	t.Helper()
	table := "snapshot"
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: other.item(t, table, id, "0")})
	require.NoError(t, err)
}

// peerKeeps puts a redundant snapshot as a program of the event-store-adapter family does.
func (s store) peerKeeps(t *testing.T, id aggregate.ID, number int, state string) {
	t.Helper()
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	count := &types.AttributeValueMemberN{Value: strconv.Itoa(number)}
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("snapshot"), Item: map[string]types.AttributeValue{
		"pkey": text(storage.ShardKey(id.Type, s.journal.Internal().Shard(id))), "skey": text(fmt.Sprintf("%s-%d", id, number)),
		"aid": text(id.String()), "seq_nr": count, "version": count, "payload": &types.AttributeValueMemberB{Value: []byte(state)},
	}})
	require.NoError(t, err)
}

// putBack removes the events after a version, and sets the version of the head to it, as a repair
// of a journal would. In the packed layout there is no head, and each event has to be its own
// commit.
func (s store) putBack(t *testing.T, id aggregate.ID, version, last int) {
	t.Helper()
	if !s.isPacked() {
		_, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("snapshot"), Key: s.key(id, "0"), UpdateExpression: aws.String("SET version = :v"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: strconv.Itoa(version)}},
		})
		require.NoError(t, err)
	}
	for n := version + 1; n <= last; n++ {
		_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("journal"), Key: s.key(id, strconv.Itoa(n))})
		require.NoError(t, err)
	}
}

// requireKind asserts that an error is a sentinel or has a type. Kind is an error, or a pointer to
// a variable of an error type.
func requireKind(t *testing.T, err error, kind any, about ...any) {
	t.Helper()
	if sentinel, ok := kind.(error); ok {
		require.ErrorIs(t, err, sentinel, about...)
	} else {
		require.ErrorAs(t, err, kind, about...)
	}
}
