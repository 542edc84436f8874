package stored

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

const (
	letters = "letters" // the topic of a publisher
	stream  = "bank-1"  // the stream of the publisher

	parking   = "parking"
	skipping  = "skipping"
	deferring = "deferring"
	blocking  = "blocking"
	stopping  = "stopping"
	mails     = "mails"
	recent    = "recent"   // the group that begins when the application starts
	balances  = "balances" // a projection, and its table
	totals    = "totals"   // a read model
)

// failing has the groups whose handlers fail while a fixture is written. The handler fails for
// event 2 of the account that has the same name as the group.
var failing = map[string]subscriber.FailurePolicy{
	parking:   subscriber.Park(1),
	skipping:  subscriber.Skip(1),
	deferring: subscriber.Defer(subscriber.Backoff{Pause: 24 * time.Hour}),
	blocking:  subscriber.Block(),
	stopping:  subscriber.Stop(1),
}

const failedEvent = 2

// topicsOf returns the topics of a consumer group whose deliveries are recorded.
func topicsOf(group string) []string {
	if group == mails {
		return []string{"account", "customer", letters}
	}
	return []string{"account"}
}

// recording has the groups whose deliveries are recorded.
func recording() []string {
	return append(slices.Sorted(maps.Keys(failing)), mails, recent)
}

// settings say how to open the application.
type settings struct {
	layout journal.Layout
	tables bool       // whether to create the tables
	faults bool       // whether handlers and the publisher of commands fail
	ids    *idCounter // makes the ids of commits
}

// bank is the application whose tables are stored.
type bank struct {
	*millrace.App
	client    *dynamodb.Client
	clock     *dynamotest.Clock
	secret    *encrypt.Encryption
	accounts  *repository.Repository[Account]
	customers *repository.Repository[Customer]
	reminders *process.Manager[Reminder]
	totals    *readmodel.Model
	letters   *publisher.Publisher
	positions *dedup.Positions
	keys      *dedup.Keys
	handled   *deliveries
	sent      *outbox
}

// open opens the application.
func open(t *testing.T, db *dynamotest.DB, s settings) *bank {
	t.Helper()
	b := &bank{client: db.Client(), clock: db.Clock(), handled: &deliveries{}, sent: &outbox{faults: s.faults}}
	ctx := t.Context()
	if s.tables {
		require.NoError(t, encrypt.CreateTable(ctx, b.client, encrypt.KeysConfig{}))
		require.NoError(t, dedup.CreateTable(ctx, b.client, dedup.TableConfig{}))
		require.NoError(t, projection.CreateTable(ctx, b.client, projection.Table{Name: balances, PartitionKey: "id"}))
	}
	b.secret = newSecret(t, b.client)
	var err error
	b.App, err = millrace.Open(ctx, b.client, millrace.Config{
		Journal:        b.journalConfig(t, s),
		ExistingTables: !s.tables,
		Subscriber: func(_ string, c *subscriber.Config) {
			c.Timing.PollInterval, c.Timing.MaxPollInterval, c.Timing.CommitInterval = 20*time.Millisecond, 200*time.Millisecond, 20*time.Millisecond
			c.NackResendSleep, c.MaxNackResendSleep = 20*time.Millisecond, 100*time.Millisecond
			c.Timing.LeaseDuration, c.Timing.BehindAfter, c.MemberName = 10*time.Second, 50*time.Millisecond, "bank/1"
		},
	})
	require.NoError(t, err)
	b.addRepositories(t)
	b.addGroups(t, s)
	b.addReadModel(t)
	b.addPublisher(t)
	b.positions, err = dedup.NewPositions(b.client, dedup.PositionsConfig{Group: "positions"})
	require.NoError(t, err)
	b.keys, err = dedup.NewKeys(b.client, dedup.KeysConfig{Group: "keys", Now: b.clock.Now})
	require.NoError(t, err)
	return b
}

// journalConfig returns the settings of the journal with the encodings of the application.
func (b *bank) journalConfig(t *testing.T, s settings) journal.Config {
	t.Helper()
	gzip, err := compress.Gzip(compress.Config{})
	require.NoError(t, err)
	return journal.Config{
		Layout: s.layout, Shards: 2, Encodings: []journal.Encoding{gzip, ofCustomers{b.secret}},
		CommandRetention: 30 * 24 * time.Hour,
		Now:              b.clock.Now, NewID: s.ids.next,
	}
}

// newSecret returns an encryption whose wrapping key never changes.
func newSecret(t *testing.T, client *dynamodb.Client) *encrypt.Encryption {
	t.Helper()
	wrapper, err := encrypt.LocalWrapper([]byte(strings.Repeat("k", encrypt.KeyBytes)))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	return secret
}

// ofCustomers encrypts the payloads of customers only.
type ofCustomers struct{ *encrypt.Encryption }

func (o ofCustomers) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	if at.Aggregate.Type != customers.Type() {
		return payload, false, nil
	}
	return o.Encryption.Encode(ctx, at, payload)
}

func (b *bank) addRepositories(t *testing.T) {
	t.Helper()
	var err error
	b.accounts, err = millrace.Repository(b.App, accounts, repository.Config{
		Snapshots: repository.Every(5), Redundancy: &repository.Redundancy{Keep: 3},
	})
	require.NoError(t, err)
	b.customers, err = millrace.Repository(b.App, customers, repository.Config{Snapshots: repository.Every(2)})
	require.NoError(t, err)
	b.reminders, err = millrace.Process(t.Context(), b.App, reminders, process.Config{
		Publisher:    b.sent,
		PollInterval: 20 * time.Millisecond,
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) {
			return "commands", nil
		},
	}, "account")
	require.NoError(t, err)
}

func (b *bank) addGroups(t *testing.T, s settings) {
	t.Helper()
	for _, name := range recording() {
		g := millrace.Group{Name: name, Topics: topicsOf(name)}
		policy, fails := failing[name]
		g.Subscriber = func(c *subscriber.Config) {
			if fails {
				c.Failures = policy
			}
			if name == recent {
				c.Start = subscriber.Now()
			}
		}
		require.NoError(t, b.Handle(g, func(msg *message.Message) error {
			id, number, _ := subscriber.AggregateFromContext(msg.Context())
			if s.faults && fails && id.Value == name && number == failedEvent {
				return fmt.Errorf("%s does not work", name)
			}
			b.handled.add(name, id, number)
			return nil
		}))
	}
	_, err := b.Project(millrace.Group{Name: balances, Topics: []string{"account"}}, sumUp(balances))
	require.NoError(t, err)
}

func (b *bank) addReadModel(t *testing.T) {
	t.Helper()
	var err error
	b.totals, err = b.ReadModel(t.Context(), readmodel.Config{
		Name: totals, Topics: []string{"account"}, Refresh: 20 * time.Millisecond, MaxAge: -1,
	}, func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
		table := projection.Table{Name: g.Table(totals), PartitionKey: "id"}
		return []projection.Reaction{sumUp(table.Name)}, projection.CreateTable(ctx, b.client, table)
	})
	require.NoError(t, err)
}

// sumUp adds the deposits of each account in a table. An event that took effect twice would show.
func sumUp(table string) projection.Reaction {
	return projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
		return []projection.Write{projection.Update(types.Update{
			TableName:        &table,
			Key:              projection.Table{Name: table, PartitionKey: "id"}.Key(r.Aggregate.Value),
			UpdateExpression: aws.String("ADD balance :amount"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":amount": &types.AttributeValueMemberN{Value: strconv.Itoa(e.Amount)},
			},
		})}, nil
	})
}

// balanceIn returns the balance of an account in a table that sumUp has filled.
func (b *bank) balanceIn(t *testing.T, table, account string) int {
	t.Helper()
	out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: projection.Table{Name: table, PartitionKey: "id"}.Key(account), ConsistentRead: aws.Bool(true),
	})
	require.NoError(t, err)
	number, ok := out.Item["balance"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	balance, err := strconv.Atoi(number.Value)
	require.NoError(t, err)
	return balance
}

func (b *bank) addPublisher(t *testing.T) {
	t.Helper()
	var err error
	b.letters, err = publisher.NewPublisher(publisher.Config{Journal: b.Journal(), StreamID: stream}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.letters.Close()) })
}

// start runs the application until stop is called.
func (b *bank) start(t *testing.T) (stop func()) {
	t.Helper()
	end, err := b.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = end() })
	return func() { require.NoError(t, end()) }
}

// deliveries are the events that groups have handled.
type deliveries struct {
	mu sync.Mutex
	// all has the numbers of events, by group and aggregate. It has each number once, in the order
	// of the first deliveries.
	all map[string]map[string][]uint64
}

func (d *deliveries) add(group string, id aggregate.ID, number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]map[string][]uint64{}
	}
	if d.all[group] == nil {
		d.all[group] = map[string][]uint64{}
	}
	if numbers := d.all[group][id.String()]; !slices.Contains(numbers, number) {
		d.all[group][id.String()] = append(numbers, number)
	}
}

// of returns what a group has handled, by aggregate.
func (d *deliveries) of(group string) map[string][]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	copied := map[string][]uint64{}
	for id, numbers := range d.all[group] {
		copied[id] = slices.Clone(numbers)
	}
	return copied
}

// outbox receives the commands of reminders.
type outbox struct {
	faults bool
	mu     sync.Mutex
	sent   []*message.Message
}

func (o *outbox) Publish(_ string, messages ...*message.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, msg := range messages {
		if o.faults && msg.Metadata.Get(publisher.AggregateIDKey) == unsent {
			return errors.New("the broker does not answer")
		}
		o.sent = append(o.sent, msg)
	}
	return nil
}

func (*outbox) Close() error { return nil }

// uuids returns the ids of the commands that were sent to a process.
func (o *outbox) uuids(process string) (ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, msg := range o.sent {
		if msg.Metadata.Get(publisher.AggregateIDKey) == process && !slices.Contains(ids, msg.UUID) {
			ids = append(ids, msg.UUID)
		}
	}
	return ids
}

// idCounter makes the ids of commits, the same ones in each run.
type idCounter struct {
	salt string
	n    atomic.Uint64
}

func (c *idCounter) next() string {
	return uuid.NewSHA1(uuid.NameSpaceOID, binary.BigEndian.AppendUint64([]byte(c.salt), c.n.Add(1))).String()
}
