package snippets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/journal/tail"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/docs/snippets/saga"
	"github.com/millrace-dev/millrace/tracing"
)

func TestAnApplicationIsWired(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := dynamotest.New(t).Client()
	check(projection.CreateTable(ctx, client, balances))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		application(ctx, client, listener)
	}()
	url := "http://" + listener.Addr().String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/totals", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, `"none"`, firstData(ctx, url+"/totals/42/events"))
	cancel()
	<-ended
}

func queryTotal(context.Context) (live.Event, error) { return live.Event{Data: "none"}, nil }

func application(ctx context.Context, client *dynamodb.Client, listener net.Listener) {
	decide := func(c *Withdraw) (string, aggregate.Decision[Account]) { return c.Account, withdraw(c.Amount) }
	reactions := []projection.Reaction{
		projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance("balances", r.Aggregate, e.Amount))}, nil
		}),
	}
	queries := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "none") })
	mux := http.NewServeMux()

	config := journal.Config{Layout: journal.Packed, Shards: 4} // fixed when the tables are created
	app, err := millrace.Open(ctx, client, millrace.Config{Prefix: "shop-", Journal: config})
	check(err)
	accounts, err := millrace.Repository(app, definition, repository.Config{})
	check(err)
	check(app.HandleCommands(command.Handler("withdraw", accounts, decide)))
	_, err = app.Project(millrace.Group{Name: "totals", Topics: []string{"account"}}, reactions...)
	check(err)

	// A query shows what the client has written.
	mux.Handle("GET /totals", app.Consistent("totals", consistency.Config{})(queries))

	// Changes are pushed to browsers.
	feed, err := app.Live(live.Config{Group: "totals"})
	check(err)
	mux.HandleFunc("GET /totals/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		if err := feed.Serve(w, r, r.PathValue("id"), queryTotal); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	})

	check(app.Serve(listener, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}))
	check(app.Run(ctx)) // until ctx ends
}

func TestCommandsAndStatesAreAsThePageShows(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.write(t.Context(), "42")
	require.NoError(t, projection.CreateTable(t.Context(), b.client, projection.Table{Name: "addresses", PartitionKey: "address"}))
	commands(t.Context(), b.j, b.accounts, "command-1", 4)
	account, err := b.accounts.Load(t.Context(), "42")
	require.NoError(t, err)
	assert.EqualValues(t, 6, account.Version)
}

func commands(ctx context.Context, j *journal.Journal, accounts *repository.Repository[Account], uuid string, version uint64) {
	// Execute a command once, however often its message is delivered.
	account, err := accounts.Execute(ctx, "42", withdraw(5), repository.CommandID(uuid))
	check(err)
	fmt.Println(account.State, account.Version, account.Repeated)

	// Write a row of your own in the same transaction, for example to claim an email address.
	claim := repository.Writes(func(repository.Commit) ([]types.TransactWriteItem, error) {
		return []types.TransactWriteItem{{Put: &types.Put{
			TableName:           aws.String("addresses"),
			Item:                map[string]types.AttributeValue{"address": &types.AttributeValueMemberS{Value: "ada@example.org"}},
			ConditionExpression: aws.String("attribute_not_exists(address)"),
		}}}, nil
	})
	_, err = accounts.Execute(ctx, "42", withdraw(5), claim)
	check(err)

	// Decide only on the version that a client has seen, such as that of an If-Match header.
	_, err = accounts.Execute(ctx, "42", withdraw(5), repository.ExpectVersion(version))
	check(err)

	// Load the state at an earlier time.
	earlier, err := accounts.LoadAsOf(ctx, "42", time.Now().AddDate(0, -1, 0))
	check(err)
	fmt.Println(earlier.State, earlier.Version)

	// Show the state after each event, also in tools that do not know its type.
	for after, err := range accounts.States(ctx, "42", repository.StatesQuery{From: 2, To: 100}) {
		check(err)
		fmt.Println(after.Record, after.State)
	}

	// Keep states in memory. A command on a cached aggregate takes one round trip.
	cached, err := repository.New(j, definition, repository.Config{Cache: 10_000})
	check(err)
	_, err = cached.Execute(ctx, "42", withdraw(5))
	check(err)
}

func TestEventsAreStoredAsThePageShows(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	var file bytes.Buffer
	storedEvents(t.Context(), client, keys, definition, &file)
	assert.NotEmpty(t, file.String())
}

func storedEvents(ctx context.Context, client *dynamodb.Client, keys *encrypt.Keys, definition aggregate.Definition[Account], file io.Writer) {
	// Compress payloads, and encrypt them with keys that can be destroyed.
	gzip, err := compress.Gzip(compress.Config{})
	check(err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	check(err)
	encodings := []journal.Encoding{gzip, secret}

	// When the tables are created: refuse payloads that are not encrypted.
	check(journal.Create(ctx, client, journal.Config{
		Shards: 16, Encodings: encodings, RequiredEncodings: []string{secret.Name()},
	}))
	j, err := journal.Open(ctx, client, journal.Config{Encodings: encodings})
	check(err)

	// Read old events as current types. Projections, process managers and subscribers need the
	// definition too. Without it they ignore events of old types, or deliver them as stored.
	definition = definition.WithUpcasters(aggregate.Rename("account.deposited.v0", "account.deposited.v1"))
	accounts, err := repository.New(j, definition, repository.Config{})
	check(err)
	definitions := []aggregate.AnyDefinition{definition}
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "mails", Definitions: definitions,
	}, nil)
	check(err)

	// Export the journal as JSON lines: resumable, and verified when imported.
	exported, err := archive.Export(ctx, j, file, archive.ExportOptions{})
	check(err)
	fmt.Println(exported.Events, "events")
	_, err = accounts.Load(ctx, "42")
	fmt.Println(err)
	check(sub.Close())
}

func TestToolsAreAsThePageShows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	app, err := millrace.Open(ctx, dynamotest.New(t).Client(), millrace.Config{Journal: journal.Config{Shards: 1}})
	require.NoError(t, err)
	accounts, err := millrace.Repository(app, definition, repository.Config{})
	require.NoError(t, err)
	_, err = accounts.Execute(ctx, "42", deposit(5))
	require.NoError(t, err)
	mux := http.NewServeMux()
	signedIn := func(h http.Handler) http.Handler { return h }
	tools(ctx, app, accounts, mux, signedIn, time.Time{})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/aggregate?type=account&id=42", http.NoBody))
	assert.Equal(t, http.StatusOK, w.Code)
}

func tools(ctx context.Context, app *millrace.App, accounts *repository.Repository[Account], mux *http.ServeMux,
	signedIn func(http.Handler) http.Handler, lastMonth time.Time,
) {
	j := app.Journal()

	// Show operators events, states, groups and what blocks them.
	operators, err := console.Handler(console.Config{App: app})
	check(err)
	mux.Handle("/console/", signedIn(operators))

	// Count the capacity units that a page or a job consumes.
	counting, units := journal.CountUnits(ctx)
	account, err := accounts.Load(counting, "42")
	check(err)
	fmt.Println(account.State, units.Read(), units.Requests())

	// List the first 50 aggregates of a type. Pass the last one as After to list the next 50.
	for head, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: "account", Limit: 50}) {
		check(err)
		fmt.Println(head.Aggregate, head.Version)
	}

	// Read the events of a topic since a time, without a consumer group. With Follow: true it
	// continues with new events until ctx ends.
	err = tail.Run(ctx, tail.Config{Journal: j, Topic: "account", Since: lastMonth}, func(events []*journal.Record) error {
		fmt.Println(events)
		return nil
	})
	check(err)

	// Show the newest events of a type, up to 20 of each shard.
	for r, err := range j.Newest(ctx, "account", 20) {
		check(err)
		fmt.Println(r)
	}
}

func TestConsumersAreAsThePageShows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := open(t)
	account := b.write(ctx, "42")
	project(b.client, b.j, b.router)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: "sender"}, nil)
	require.NoError(t, err)
	b.router.AddConsumerHandler("sender", "mails", sub, func(*message.Message) error { return nil })
	subscribers := consumers(b.j, b.router)
	b.run(t)
	b.wait(ctx, "balances", account)
	require.NoError(t, b.publisher.Publish("mails", message.NewMessage("1", []byte(`{}`))))
	operate(ctx, b.j, aggregate.ID{})
	for _, sub := range subscribers {
		require.NoError(t, sub.Close())
	}
}

func consumers(j *journal.Journal, router *message.Router) []*subscriber.Subscriber {
	// Begin a new group now, with some types of events.
	fromNow, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "audit", Start: subscriber.Now(), EventTypes: []string{"account.withdrawn.v1"},
	}, nil)
	check(err)

	// Deliver all new events to each process, without a group: for caches and live pages.
	broadcast, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, Broadcast: true, Start: subscriber.Now()}, nil)
	check(err)

	// Park an aggregate after 20 failed attempts, until an operator decides.
	parking, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "totals", Failures: subscriber.Park(20),
	}, nil)
	check(err)

	// Or skip the event, and keep a record of it.
	skipping, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "search", Failures: subscriber.Skip(20),
	}, nil)
	check(err)

	// Or retry the event by itself while later events of its aggregate are handled. This is for
	// mails and calls.
	deferring, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "mails",
		Failures: subscriber.Defer(subscriber.Backoff{Pause: time.Second, MaxPause: 10 * time.Minute}),
	}, nil)
	check(err)

	// Trace commits and handlers, linked to each other.
	router.AddMiddleware(tracing.Middleware(tracing.Config{}))
	return []*subscriber.Subscriber{fromNow, broadcast, parking, skipping, deferring}
}

func operate(ctx context.Context, j *journal.Journal, after aggregate.ID) {
	g := groups.New(j)

	// List the parked aggregates in parts: after is the last one of the part before.
	for parked, err := range g.Parked(ctx, "balances", "account", after) {
		check(err)
		fmt.Println(parked.Aggregate, parked.Parked)
	}

	// Handle all events again. Their effects happen again too: pause the group and clear its read
	// model first, or build a new read model beside the old one.
	check(g.Reset(ctx, "balances", "account", subscriber.Beginning(), nil))

	// Remove messages without an aggregate id that all groups have handled, after three days.
	trimmed, err := g.Trim(ctx, "mails", groups.TrimOptions{Keep: 72 * time.Hour})
	check(err)
	fmt.Println(trimmed.Events, "messages removed")
}

func TestProcessesAreListedAsThePageShows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := open(t)
	require.NoError(t, process.CreateTable(ctx, b.client, process.DefaultTable))
	manager, err := process.New(b.j, b.client, saga.Definition, process.Config{
		Publisher:            b.publisher,
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
	})
	require.NoError(t, err)
	msg := message.NewMessageWithContext(ctx, "1", []byte(`{"Customer":"anna","Total":5}`))
	msg.Metadata = message.Metadata{"name": "order.placed.v1", "aggregate_type": "order", "aggregate_id": "o1"}
	require.NoError(t, manager.Handle(msg))
	listed := 0
	for p, err := range process.NewBacklog(b.client, process.DefaultTable).Open(ctx, process.Query{Type: "order-saga"}) {
		require.NoError(t, err)
		assert.Equal(t, "o1", p.Process.Value)
		listed++
	}
	require.Equal(t, 1, listed)
	processes(ctx, b.client)
}

func processes(ctx context.Context, client *dynamodb.Client) {
	backlog := process.NewBacklog(client, process.DefaultTable)

	// List the processes that have begun and are not over.
	for p, err := range backlog.Open(ctx, process.Query{Type: "order-saga"}) {
		check(err)
		fmt.Println(p.Process, p.Begun)
	}

	// List the timeouts and commands that managers handle within the next hour. It includes those
	// that are overdue: their next attempt is at most RetryAfter away.
	for p, err := range backlog.Due(ctx, "order-saga", time.Now().Add(time.Hour)) {
		check(err)
		fmt.Println(p.Process, p.Timeout, p.At, p.Failure)
	}
}
