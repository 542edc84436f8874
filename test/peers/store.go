package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// contender is an event store of the comparison.
type contender struct {
	name string
	// feed is set if the store has what consumers read new events from: an index by time, which
	// each commit pays for.
	feed bool
	// snapshots is set if the store can store a state.
	snapshots bool
	// open creates tables of its own and opens a store on them.
	open func(ctx context.Context, db database) (store, error)
}

// database is where a store has its tables. The client serves this process, and the rest serves
// other processes.
type database struct {
	client                *dynamodb.Client
	endpoint, accessKeyID string
}

// store does the work that is compared. It keeps in memory what the last call for an aggregate
// left, as a program that continues with an aggregate does. Both calls return their time.
type store interface {
	// appendTo commits one event for each text, in one commit if the store can. If no earlier call
	// has left the aggregate, the first event creates it.
	appendTo(ctx context.Context, id string, texts []string, snapshot bool) (time.Duration, error)
	// load returns the number of events of an aggregate, and the text of the last one.
	load(ctx context.Context, id string) (loaded, error)
	// command loads an aggregate as a program does that decides on it, and commits one event.
	command(ctx context.Context, id, text string) (time.Duration, error)
}

type loaded struct {
	took   time.Duration
	events int
	text   string
}

// operation is a row of the tables.
type operation struct {
	name      string
	snapshots bool // it needs a store that can store a state
	once      bool // repeating it would be other work: the aggregate grows
	// prepare creates the aggregate, unless the operation does.
	prepare func(ctx context.Context, w work) error
	run     func(ctx context.Context, w work) (time.Duration, error)
}

// work is what one store does for a row.
type work struct {
	store
	id     string
	size   int        // bytes of the payload of an event in Millrace
	random *rand.Rand // of the texts, which are the same for each store
}

func newWork(s store, id string, size int) work {
	return work{store: s, id: id, size: size, random: rand.New(rand.NewPCG(0, uint64(size)))}
}

var operations = []operation{
	{name: "first event", run: commit(1)},
	{name: "next event", prepare: history(1, 0), run: commit(1)},
	{name: "10 events", prepare: history(1, 0), run: commit(10)},
	{name: "next event, with a snapshot", snapshots: true, prepare: history(1, 0), run: commitWithSnapshot},
	{name: "load of 100 events", prepare: history(100, 0), run: load},
	{name: "load of 100 events, 95 in a snapshot", snapshots: true, prepare: history(100, 95), run: load},
	{name: "command on 100 events", once: true, prepare: history(100, 0), run: command},
	{name: "command on 100 events, 95 in a snapshot", snapshots: true, once: true, prepare: history(100, 95), run: command},
}

var sizes = []int{200, 1000}

func commit(n int) func(context.Context, work) (time.Duration, error) {
	return func(ctx context.Context, w work) (time.Duration, error) { return w.write(ctx, n, false) }
}

func commitWithSnapshot(ctx context.Context, w work) (time.Duration, error) {
	return w.write(ctx, 1, true)
}

// write appends n events.
func (w work) write(ctx context.Context, n int, snapshot bool) (time.Duration, error) {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = w.text()
	}
	return w.appendTo(ctx, w.id, texts, snapshot)
}

// history creates an aggregate with n events, each in a commit of its own, and loads it. If the
// store can, it stores a snapshot with one of them. The event-store-adapter family always stores
// one with the first event.
func history(n, snapshotAt int) func(context.Context, work) error {
	return func(ctx context.Context, w work) error {
		for i := range n {
			if _, err := w.write(ctx, 1, i+1 == snapshotAt); err != nil {
				return err
			}
		}
		_, err := w.load(ctx, w.id)
		return err
	}
}

func load(ctx context.Context, w work) (time.Duration, error) {
	got, err := w.load(ctx, w.id)
	if err == nil && (got.events != 100 || len(got.text) != len(w.text())) {
		err = fmt.Errorf("a load of %s returned %d events and %d bytes of text", w.id, got.events, len(got.text))
	}
	return got.took, err
}

func command(ctx context.Context, w work) (time.Duration, error) {
	return w.command(ctx, w.id, w.text())
}

// text returns a text that makes the payload of an event in Millrace have the size.
func (w work) text() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	text := make([]byte, w.size-len(`{"Text":""}`))
	for i := range text {
		text[i] = letters[w.random.IntN(len(letters))]
	}
	return string(text)
}

// openStores opens all stores on one database.
func openStores(ctx context.Context, db database, contenders []contender) ([]store, error) {
	stores := make([]store, len(contenders))
	for i, c := range contenders {
		var err error
		if stores[i], err = c.open(ctx, db); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return stores, nil
}

// nameOf returns the id of an aggregate. It has 36 bytes, as ids often have.
func nameOf(operation, size, round int) string {
	return fmt.Sprintf("%08d-0000-4000-8000-%04d%08d", operation, size, round)
}
