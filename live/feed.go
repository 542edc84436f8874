package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Feed observes events, and notifies the watchers of its process. It is safe for concurrent use.
type Feed struct {
	config   Config
	router   *message.Router
	watchers watchers
	late     late

	closing context.Context // ends with Close, and when Run returns
	end     context.CancelFunc
	once    sync.Once // for the work of Close
}

// closeTimeout is the time that the router waits for handlers after the end of
// subscriber.BroadcastConfig.CloseTimeout, whose default is 5 seconds.
const closeTimeout = 5 * time.Second

// New returns a feed. Call [Feed.Run] to observe events.
//
// Errors: [*ConfigError], [*subscriber.ConfigError].
func New(config Config) (*Feed, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	timeout := closeTimeout + max(config.Subscriber.CloseTimeout, 5*time.Second)
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: timeout}, config.Logger)
	if err != nil {
		return nil, err
	}
	f := &Feed{config: config, router: router}
	f.closing, f.end = context.WithCancel(context.Background())
	router.AddMiddleware(f.logAndAck, middleware.Recoverer)
	for _, topic := range config.Topics {
		sub, err := subscriber.NewBroadcast(config.Subscriber, config.Logger)
		if err != nil {
			return nil, err
		}
		router.AddConsumerHandler("live/"+topic, topic, sub, f.handle)
	}
	return f, nil
}

// Run observes events until ctx ends or [Feed.Close] is called, and then returns nil. All streams
// and watchers end when it returns. Call Run once. After Close it returns nil at once.
func (f *Feed) Run(ctx context.Context) error {
	defer f.endWatching()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.closing, cancel)()
	if f.closing.Err() != nil {
		return nil
	}
	var catchUp sync.WaitGroup
	defer catchUp.Wait()
	defer cancel()
	catchUp.Add(1)
	go func() {
		defer catchUp.Done()
		select {
		case <-f.Running():
			f.watchers.notifyAll() // events may have been missed before
		case <-ctx.Done():
		}
	}()
	err := f.router.Run(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // it was stopped while it started
	}
	return err
}

// Running returns a channel that is closed when Run observes events. Streams need not wait for
// that.
func (f *Feed) Running() <-chan struct{} { return f.router.Running() }

// Close ends all streams and watchers at once, and then Run. It ends the contexts of [Config].Key
// and Wait, and waits for their calls, at most subscriber.BroadcastConfig.CloseTimeout and a few
// seconds. Later calls return nil.
func (f *Feed) Close() (err error) {
	f.once.Do(func() {
		f.endWatching()
		select {
		case <-f.Running():
			err = f.router.Close()
		default: // a router that does not run yet cannot be closed; the context of Run has ended
		}
	})
	return err
}

func (f *Feed) endWatching() {
	f.end()
	f.watchers.close()
}

// Watch returns a channel that receives a value after each change that concerns the key. Several
// changes become one value if the earlier value has not been received. The channel is closed when
// the feed ends. Query after Watch has returned, so that no change is missed, and call stop at the
// end.
func (f *Feed) Watch(key string) (changed <-chan struct{}, stop func()) {
	return f.watchers.add(key)
}

// Notify notifies the watchers of a key in this process. Use it for changes that are not events,
// such as a user who goes offline. Watchers in other processes see the change at their next
// refresh.
func (f *Feed) Notify(key string) { f.watchers.notify(key) }

// logAndAck acks events whose handling failed, since watchers refresh in any case.
func (f *Feed) logAndAck(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		if _, err := next(msg); err != nil {
			fields := watermill.LogFields{}
			if id, number, ok := subscriber.AggregateFromContext(msg.Context()); ok {
				fields = watermill.LogFields{"event": printable.Text(id.String()), "number": number}
			}
			f.config.Logger.Error("Watchers may not have been notified of a change", err, fields)
		}
		return nil, nil
	}
}

func (f *Feed) handle(msg *message.Message) error {
	record, ok := subscriber.RecordFromContext(msg.Context())
	if !ok || !f.isWatched(record) {
		return nil
	}
	ctx, cancel := context.WithCancel(msg.Context())
	defer cancel()
	defer context.AfterFunc(f.closing, cancel)()
	err := f.wait(ctx, record)
	if ctx.Err() != nil {
		return nil // the feed ends
	}
	f.late.note(record.Aggregate, err != nil)
	if err != nil {
		f.config.Logger.Error("The read model is late, watchers may be notified too early", err,
			watermill.LogFields{"event": printable.Text(record.Aggregate.String()), "number": record.Number})
	}
	key, err := f.config.Key(ctx, record)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("find the key of the event: %w", err)
	case key != "":
		f.Notify(key)
	}
	return nil
}

// isWatched reports whether an event may concern a watcher.
func (f *Feed) isWatched(r *journal.Record) bool {
	if f.config.Hint == nil {
		return f.watchers.any()
	}
	return f.watchers.has(f.config.Hint(r))
}

// wait waits until the read model has applied an event. It repeats failed waits until the timeout.
func (f *Feed) wait(ctx context.Context, r *journal.Record) error {
	ctx, cancel := context.WithTimeout(ctx, f.late.timeout(r.Aggregate, f.config.WaitTimeout))
	defer cancel()
	pauses := retry.Pauses(50*time.Millisecond, 2*time.Second, 0)
	for {
		err := f.config.Wait(ctx, r)
		if err == nil || ctx.Err() != nil || errors.Is(err, groups.ErrExternalPositions) {
			return err
		}
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return err
		}
	}
}
