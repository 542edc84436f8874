// Package live notifies the browsers that one process serves of changes in a read model, by
// server-sent events.
//
//	feed, err := live.New(live.Config{Journal: j, Group: "room-view", Topics: []string{"room"}, Key: roomOf})
//	go feed.Run(ctx)
//	...
//	err := feed.Serve(w, r, roomID, func(ctx context.Context) (live.Event, error) { ... query the room })
//
// One consumer group keeps the read model, and each event is handled in one of its processes. So
// each process hears of all events here (subscriber.Config.Broadcast), waits until the read model's
// group has applied them, and notifies whoever watches. It holds nothing back: an event that it
// cannot wait for is told all the same, and watchers look again after a while in any case.
package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Config configures a [Feed]. Journal, Group, Topics and Key are required.
type Config struct {
	Journal *journal.Journal
	Group   string   // the consumer group that keeps the read model
	Topics  []string // of its events
	// Key returns the key that an event concerns, "" for none. Browsers watch one key each. The
	// read model has the event by then.
	Key func(context.Context, *journal.Record) (string, error)
	// Hint returns the same where the record alone has it. Then nothing is read for events that
	// nobody watches. Default: none.
	Hint func(*journal.Record) string
	// Subscriber says how often it looks for events of other processes, and the like. Journal,
	// Broadcast and Start are filled in.
	Subscriber subscriber.Config
	Logger     watermill.LoggerAdapter
}

// Feed hears of changes and notifies those in its process who watch.
type Feed struct {
	config Config
	groups *groups.Groups
	router *message.Router

	lookAgain time.Duration

	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
	closed   bool
	cancel   context.CancelFunc // of Run
}

// New makes a feed that hears nothing until Run.
func New(config Config) (*Feed, error) {
	if config.Journal == nil || config.Key == nil || config.Group == "" || len(config.Topics) == 0 {
		return nil, errors.New("live: Journal, Group, Topics and Key are required")
	}
	if config.Logger == nil {
		config.Logger = watermill.NopLogger{}
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: ending}, config.Logger)
	if err != nil {
		return nil, err
	}
	f := &Feed{
		config: config, groups: groups.New(config.Journal), router: router, lookAgain: lookAgain,
		watchers: map[string]map[chan struct{}]struct{}{},
	}
	consume := config.Subscriber
	consume.Journal, consume.Broadcast, consume.Start = config.Journal, true, subscriber.Now()
	router.AddMiddleware(subscriber.NackReason)
	for _, topic := range config.Topics {
		sub, err := subscriber.NewSubscriber(consume, config.Logger)
		if err != nil {
			return nil, err
		}
		router.AddConsumerHandler("live/"+topic, topic, sub, f.handle)
	}
	return f, nil
}

// Run hears of changes until the context ends or Close is called.
func (f *Feed) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.cancel = cancel
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return nil
	}
	err := f.router.Run(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // before it heard anything
	}
	return err
}

// Running is closed once Run hears.
func (f *Feed) Running() <-chan struct{} { return f.router.Running() }

// ending bounds how long Close waits for what hears.
const ending = 10 * time.Second

// Close ends Run and all streams.
func (f *Feed) Close() error {
	f.mu.Lock()
	again := f.closed
	f.closed = true
	for _, watching := range f.watchers {
		for watcher := range watching {
			close(watcher)
		}
	}
	f.watchers = nil
	cancel := f.cancel
	f.mu.Unlock()
	if again {
		return nil
	}
	select {
	case <-f.Running():
		return f.router.Close()
	default: // a router that does not run yet would take Close for a handler that does not end
		if cancel != nil {
			cancel()
		}
	}
	return nil
}

// Watch returns a signal after changes, one for several that come at once. The channel is closed
// with the feed. Stop frees it.
func (f *Feed) Watch(key string) (changed <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		close(watcher)
		return watcher, func() {}
	}
	if f.watchers[key] == nil {
		f.watchers[key] = map[chan struct{}]struct{}{}
	}
	f.watchers[key][watcher] = struct{}{}
	return watcher, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers[key], watcher)
		if len(f.watchers[key]) == 0 {
			delete(f.watchers, key)
		}
	}
}

// Tell notifies those in this process who watch a key, of a change that is no event.
func (f *Feed) Tell(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for watcher := range f.watchers[key] {
		select {
		case watcher <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}

// concernsSomebody reports whether anybody may watch what an event concerns.
func (f *Feed) concernsSomebody(r *journal.Record) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config.Hint != nil {
		return len(f.watchers[f.config.Hint(r)]) > 0
	}
	return len(f.watchers) > 0
}

// patience is how long the read model has to apply an event: longer than its other processes take
// to notice that one has crashed, a lease of 10 seconds and a quarter of it by default. again is
// when it is asked once more after an error.
const (
	patience = 15 * time.Second
	again    = 100 * time.Millisecond
)

func (f *Feed) handle(msg *message.Message) error {
	record, ok := subscriber.RecordFromContext(msg.Context())
	if !ok || !f.concernsSomebody(record) {
		return nil
	}
	ctx, cancel := context.WithTimeout(msg.Context(), patience)
	defer cancel()
	err := insist(ctx, func() error { return f.groups.WaitApplied(ctx, f.config.Group, record.Aggregate, record.Number) })
	fields := watermill.LogFields{"event": record.Aggregate.String(), "number": record.Number}
	if err != nil && msg.Context().Err() == nil {
		f.config.Logger.Error("The read model is late, its watchers may be told too early", err, fields)
	}
	key, err := f.config.Key(msg.Context(), record)
	if err != nil {
		if msg.Context().Err() == nil {
			f.config.Logger.Error("Nobody is told of a change", err, fields)
		}
		return nil // who watches looks again
	}
	if key != "" {
		f.Tell(key)
	}
	return nil
}

// insist does something again after errors, as long as the context lasts.
func insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}
