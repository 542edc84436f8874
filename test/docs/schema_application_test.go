package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

type (
	note  struct{ Text string }
	added struct{ Text string }
	// twice is an event of an earlier version.
	twice struct{ Text string }

	notes = aggregate.Events[note]
)

func (added) EventType() string { return "note.added.v2" }
func (e added) Apply(n *note)   { n.Text = e.Text }
func (twice) EventType() string { return "note.added.v1" }
func (e twice) Apply(n *note)   { n.Text = e.Text }
func add(texts ...string) func(note) (notes, error) {
	return func(note) (events notes, err error) {
		for _, text := range texts {
			events = append(events, added{text})
		}
		return events, nil
	}
}

var noteDefinition = aggregate.Define[note]("note", added{})

// application writes to the tables of a journal in one of the layouts.
type application struct {
	t       *testing.T
	db      *dynamotest.DB
	layout  journal.Layout
	journal *journal.Journal
	notes   *repository.Repository[note]
	written *attributes
}

// writeEverything uses each feature that stores items.
func writeEverything(t *testing.T, layout journal.Layout, written *attributes) {
	t.Helper()
	a := &application{t: t, db: dynamotest.New(t), layout: layout, written: written}
	a.journal = a.open("app-", journal.Config{CommandRetention: time.Hour}, journal.Config{CommandRetention: time.Hour})
	a.notes = a.repository(a.journal)
	a.writeCommits()
	a.writeCommands()
	a.writeSecrets()
	a.removeEvents()
	a.consume()
	a.catchUp()
	a.writeKeysOfMessages()
	a.runProcesses()
	a.beginReadModel()
	a.changeDescriptor()
	a.scan()
}

func (a *application) scan() { a.written.scan(a.t, a.db, a.layout) }

func (a *application) await(wanted ...string) { a.written.await(a.t, a.db, a.layout, wanted...) }

// open creates a journal and opens it.
func (a *application) open(prefix string, create, open journal.Config) *journal.Journal {
	tables := journal.Tables{Journal: prefix + "journal", Snapshot: prefix + "snapshot", Checkpoint: prefix + "checkpoint"}
	create.Layout, create.Shards, create.Tables, open.Tables = a.layout, 2, tables, tables
	require.NoError(a.t, journal.Create(a.t.Context(), a.db.Client(), create))
	return testjournal.Open(a.t, a.db.Client(), open)
}

func (a *application) repository(j *journal.Journal) *repository.Repository[note] {
	r := testjournal.Repository(a.t, j, noteDefinition, repository.Config{
		Snapshots: repository.Every(2), SnapshotSchema: 1, Redundancy: &repository.Redundancy{Keep: 1, TTL: time.Hour},
	})
	return r
}

func (a *application) execute(ctx context.Context, id string, decide aggregate.Decision[note], options ...repository.Option) {
	_, err := a.notes.Execute(ctx, id, decide, options...)
	require.NoError(a.t, err)
}

// writeCommits writes small, large and split commits, metadata and snapshots.
func (a *application) writeCommits() {
	ctx := aggregate.ContextWithMetadata(a.t.Context(), aggregate.Metadata{"page": "3", "header": "\xff"})
	for range 5 {
		a.execute(ctx, "small", add("short"))
	}
	large := strings.Repeat("x", 300<<10)
	a.execute(a.t.Context(), "large", add(large, large))
}

// writeCommands writes commands with and without events, and one over two aggregates.
func (a *application) writeCommands() {
	ctx := a.t.Context()
	for n := range 140 {
		a.execute(ctx, "commands", add("executed"), repository.WithCommandID(fmt.Sprint("command ", n)))
	}
	a.execute(ctx, "refusing", add("executed"))
	for n := range 140 {
		a.execute(ctx, "refusing", add(), repository.WithCommandID(fmt.Sprint("nothing ", n)))
	}
	a.scan() // the placeholder
	a.execute(ctx, "refusing", add("again"))
	a.execute(ctx, "refusing", add(), repository.WithCommandID("at last"))

	var tx repository.Transaction
	from, to := a.notes.AddTo(&tx, "from"), a.notes.AddTo(&tx, "to")
	require.NoError(a.t, tx.Execute(ctx, func() error {
		from.Append(added{"out"})
		to.Append(added{"in"})
		return nil
	}, repository.WithCommandID("move")))
}

// writeSecrets writes encoded events and snapshots to a journal of its own, and destroys a key.
func (a *application) writeSecrets() {
	ctx, keysConfig := a.t.Context(), encrypt.KeysConfig{Table: "app-keys"}
	require.NoError(a.t, encrypt.CreateTable(ctx, a.db.Client(), keysConfig))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(a.t, err)
	keys, err := encrypt.NewKeys(a.db.Client(), wrapper, keysConfig)
	require.NoError(a.t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(a.t, err)
	gzip, err := compress.Gzip(compress.Config{})
	require.NoError(a.t, err)

	create := journal.Config{RequiredEncodings: []string{secret.Name()}, RequiredByType: map[string][]string{"note": {secret.Name()}}}
	if a.layout == journal.Classic {
		create.Classic.OccurredAtUnit = time.Second
	}
	secrets := a.repository(a.open("secret-", create, journal.Config{Encodings: []journal.Encoding{gzip, secret}}))
	for _, id := range []string{"kept", "destroyed"} {
		for range 4 {
			_, err := secrets.Execute(ctx, id, add("secret"))
			require.NoError(a.t, err)
		}
	}
	require.NoError(a.t, keys.Destroy(ctx, aggregate.ID{Type: "note", Value: "destroyed"}))
}

// removeEvents truncates an aggregate and deletes others.
func (a *application) removeEvents() {
	ctx := a.t.Context()
	for _, id := range []string{"truncated", "deleted", "expiring"} {
		for range 4 {
			a.execute(ctx, id, add("old"))
		}
	}
	require.NoError(a.t, a.notes.Truncate(ctx, "truncated", 3, journal.RemoveOptions{}))
	require.NoError(a.t, a.notes.Truncate(ctx, "commands", 100, journal.RemoveOptions{}))
	require.NoError(a.t, a.notes.Delete(ctx, "deleted", 4, journal.RemoveOptions{}))
	if a.layout == journal.Classic { // the packed layout refuses it
		require.NoError(a.t, a.notes.Delete(ctx, "expiring", 4, journal.RemoveOptions{After: time.Hour}))
	}
}

// consume runs consumer groups whose handlers fail for the aggregate "small".
func (a *application) consume() {
	ctx := a.t.Context()
	later := subscriber.Backoff{Pause: time.Hour}
	split := noteDefinition.WithUpcasters(aggregate.Split("note.added.v1", func(e twice) ([]added, error) {
		return []added{{e.Text}, {e.Text}}, nil
	}))
	old := testjournal.Repository(a.t, a.journal, aggregate.Define[note]("note", twice{}), repository.Config{Snapshots: repository.Never})
	_, err := old.Execute(ctx, "split", func(note) (notes, error) { return notes{twice{"two events"}}, nil })
	require.NoError(a.t, err)

	fail := func(aggregateID string, part string) message.NoPublishHandlerFunc {
		return func(msg *message.Message) error {
			id, _, _ := subscriber.AggregateFromContext(msg.Context())
			if id.Value == aggregateID && msg.Metadata.Get(subscriber.PartKey) == part {
				return errors.New("cannot handle it")
			}
			return nil
		}
	}
	a.join(subscriber.Config{ConsumerGroup: "handles"}, fail("", ""))
	a.join(subscriber.Config{ConsumerGroup: "begins-now", Start: subscriber.Now(), NoReplay: true}, fail("", ""))
	a.join(subscriber.Config{ConsumerGroup: "blocks", Timing: subscriber.Timing{BehindAfter: time.Millisecond}}, fail("small", ""))
	a.join(subscriber.Config{ConsumerGroup: "parks", Failures: subscriber.Park(1)}, fail("small", ""))
	a.join(subscriber.Config{ConsumerGroup: "skips", Failures: subscriber.Skip(1)}, fail("small", ""))
	a.join(subscriber.Config{ConsumerGroup: "defers", Failures: subscriber.Defer(later)}, fail("small", ""))
	a.join(subscriber.Config{ConsumerGroup: "stops", Failures: subscriber.Stop(1)}, fail("small", ""))
	a.join(subscriber.Config{
		ConsumerGroup: "splits", Failures: subscriber.Defer(subscriber.Backoff{Pause: 50 * time.Millisecond, MaxPause: time.Hour}), Definitions: []aggregate.AnyDefinition{split},
	}, fail("split", "2/2"))
	a.await(
		"checkpoint-behind.failed_at", "checkpoint-behind.parked_at", "checkpoint-event.due_at", "checkpoint-event.part",
		"checkpoint-shards.stopped", "checkpoint-cursor.occurred_at", "checkpoint-position.position",
	)
	leave := a.join(subscriber.Config{ConsumerGroup: "leaves"}, fail("", ""))
	g := groups.Of(a.journal, "leaves", "note")
	require.Eventually(a.t, func() bool { return g.Pause(ctx) == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(a.t, g.Resume(ctx))
	a.await("checkpoint-shards.resumed")
	leave()
	require.NoError(a.t, g.Reset(ctx, subscriber.Beginning(), nil))
	a.await("checkpoint-shards.ended")
	require.NoError(a.t, g.Remove(ctx, groups.RemoveOptions{}))
}

// catchUp works in bursts. One hands an aggregate over to another.
func (a *application) catchUp() {
	burst := func(handle message.NoPublishHandlerFunc, hints ...subscriber.Hint) {
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: a.journal, ConsumerGroup: "bursts"}, nil)
		require.NoError(a.t, err)
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
		require.NoError(a.t, err)
		router.AddConsumerHandler("bursts", "note", sub, handle)
		_, err = subscriber.Burst{Hints: hints}.Run(a.t.Context(), router)
		require.NoError(a.t, err)
	}
	done := func(*message.Message) error { return nil }
	burst(done)
	_, err := groups.New(a.journal).TrimDue(a.t.Context(), "note", groups.TrimOptions{Keep: time.Minute})
	require.NoError(a.t, err)
	a.scan()
	a.execute(a.t.Context(), "burst", add("one"))
	hint := subscriber.Hint{Aggregate: aggregate.ID{Type: "note", Value: "burst"}, Version: 1}
	burst(func(*message.Message) error {
		a.execute(a.t.Context(), "burst", add("two"))
		burst(done, subscriber.Hint{Aggregate: hint.Aggregate, Version: 2})
		a.scan()
		return nil
	}, hint)
}

// join subscribes to the topic of notes and handles its messages until the test ends or the
// returned function is called.
func (a *application) join(config subscriber.Config, handle message.NoPublishHandlerFunc) (leave func()) {
	config.Journal, config.NackResendSleep, config.Timing.CommitInterval = a.journal, -1, 10*time.Millisecond
	if config.ConsumerGroup == "blocks" {
		config.NackResendSleep = 100 * time.Millisecond
	}
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(a.t, err)
	messages, err := sub.Subscribe(a.t.Context(), "note")
	require.NoError(a.t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for msg := range messages {
			if err := handle(msg); err != nil {
				subscriber.SetNackReason(msg.Context(), err)
				msg.Nack()
			} else {
				msg.Ack()
			}
		}
	}()
	leave = func() {
		assert.NoError(a.t, sub.Close())
		<-ended
	}
	a.t.Cleanup(leave)
	return leave
}

// writeKeysOfMessages deduplicates messages by keys and by positions.
func (a *application) writeKeysOfMessages() {
	ctx := a.t.Context()
	require.NoError(a.t, dedup.CreateTable(ctx, a.db.Client(), dedup.TableConfig{Name: "app-dedup"}))
	keys, err := dedup.NewKeys(a.db.Client(), dedup.KeysConfig{Table: "app-dedup", Group: "mails", Window: time.Hour})
	require.NoError(a.t, err)
	_, err = keys.IsDuplicate(ctx, "mail 1")
	require.NoError(a.t, err)
	positions, err := dedup.NewPositions(a.db.Client(), dedup.PositionsConfig{Table: "app-dedup", Group: "mails"})
	require.NoError(a.t, err)
	handle := positions.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, nil })
	msg := message.NewMessageWithContext(ctx, "1", nil)
	msg.Metadata = message.Metadata{"aggregate_type": "note", "aggregate_id": "small", "sequence_number": "1"}
	_, err = handle(msg)
	require.NoError(a.t, err)
}

type (
	nag   struct{ Asked, Over bool }
	asked struct{}
	ended struct{}
	ask   struct{ Note string }
)

func (asked) EventType() string { return "nag.asked" }
func (asked) Apply(r *nag)      { r.Asked = true }
func (ended) EventType() string { return "nag.ended" }
func (ended) Apply(r *nag)      { r.Over = true }

// noPublisher is a publisher that is down.
type noPublisher struct{}

func (noPublisher) Publish(string, ...*message.Message) error {
	return errors.New("the broker is down")
}
func (noPublisher) Close() error { return nil }

// runProcesses starts processes whose commands cannot be sent and whose timeouts fail.
func (a *application) runProcesses() {
	ctx := a.t.Context()
	require.NoError(a.t, process.CreateTable(ctx, a.db.Client(), "app-process"))
	definition := process.Define(aggregate.Define[nag]("nag", asked{}, ended{}),
		process.On(func(_ added, in process.Input) string { return in.Source.Value },
			func(_ nag, _ added, in process.Input) (process.Step[nag], error) {
				return process.Record(asked{}).Send(ask{in.Process}).SetTimeout("answer", time.Hour), nil
			}).Starts(),
		process.OnTimeout("answer", func(nag, process.Input) (process.Step[nag], error) {
			return process.Step[nag]{}, errors.New("cannot decide")
		}),
	).EndsWhen(func(r nag) bool { return r.Over })
	var passed atomic.Int64
	start := time.Now()
	manager, err := process.New(a.journal, a.db.Client(), definition, process.Config{
		Table: "app-process", Publisher: noPublisher{}, Queues: 2,
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
		Now:                  func() time.Time { return start.Add(time.Duration(passed.Load())) },
	})
	require.NoError(a.t, err)
	for id, correlation := range map[string]string{"1": "request 1", "2": "\xff"} {
		msg := message.NewMessageWithContext(ctx, "event "+id, []byte(`{}`))
		msg.Metadata = message.Metadata{
			"name": added{}.EventType(), "aggregate_type": "note", "aggregate_id": id, aggregate.CorrelationIDKey: correlation,
		}
		require.Error(a.t, manager.Handle(msg)) // its commands are stored, and not sent
	}
	passed.Store(int64(2 * time.Hour))
	_, err = manager.Fire(ctx)
	require.Error(a.t, err)
}

// beginReadModel begins the first generation of a read model.
func (a *application) beginReadModel() {
	require.NoError(a.t, readmodel.CreateTable(a.t.Context(), a.db.Client(), "app-readmodel"))
	model, err := readmodel.Open(a.t.Context(), a.db.Client(), readmodel.Config{
		Name: "notes", Journal: a.journal, Topics: []string{"note"}, Table: "app-readmodel",
	})
	require.NoError(a.t, err)
	_, err = model.Begin(a.t.Context())
	require.NoError(a.t, err)
}

// changeDescriptor grows the tail and marks the tables as restored.
func (a *application) changeDescriptor() {
	ctx := a.t.Context()
	if a.layout == journal.Packed {
		_, err := a.journal.GrowTail(ctx, 4)
		require.NoError(a.t, err)
	}
	require.NoError(a.t, journal.MarkRestored(ctx, a.db.Client(), journal.Config{Tables: a.journal.Config().Tables}))
}
