package subscriber

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/internal/history"
)

// Subscriber is a Watermill subscriber that tails a journal. It is safe for
// concurrent use.
type Subscriber struct {
	config     Config
	checkpoint *checkpoint.Store
	history    history.History
	logger     watermill.LoggerAdapter
	stats      counters

	mu      sync.Mutex
	members map[*member]struct{}
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

var (
	_ message.Subscriber           = (*Subscriber)(nil)
	_ message.SubscribeInitializer = (*Subscriber)(nil)
)

// NewSubscriber makes a subscriber; a nil logger logs nothing. It starts nothing and makes no round
// trip. It logs once, as information, if the journal's RetryBudget is not below
// [Config.TrailingDelay]. Errors: [*ConfigError].
func NewSubscriber(config Config, logger watermill.LoggerAdapter) (*Subscriber, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	if budget := config.Journal.Config().RetryBudget; budget >= config.TrailingDelay {
		// A commit whose outcome is unknown keeps its date while it is repeated. After that long
		// its events appear behind the last trailing read.
		logger.Info("The journal's RetryBudget is not below TrailingDelay: commits that are repeated that long may be delivered late, "+
			"with their aggregate's next event or by the sweep; lower RetryBudget or raise TrailingDelay", watermill.LogFields{
			"consumer_group": config.ConsumerGroup, "retry_budget": budget, "trailing_delay": config.TrailingDelay,
		})
	}
	today, err := history.New(nil, config.Definitions)
	if err != nil {
		return nil, err
	}
	return &Subscriber{
		config: config, checkpoint: checkpoint.New(config.Journal), history: today, logger: logger,
		members: map[*member]struct{}{}, closing: make(chan struct{}),
	}, nil
}

// Subscribe returns the events of all aggregates of the type topic, each aggregate's in
// order, one at a time: the next one comes after the one before was acked. Messages of
// different aggregates come side by side, up to [Config.MaxInFlight], if the receiver takes
// them; one who handles one message before it receives the next handles one at a time.
//
// A nacked message comes again after [Config.NackResendSleep]. The channel is closed when ctx ends
// or the Subscriber is closed. Several subscriptions of one group to one topic, in one process or
// many, are members: they share the logical shards, and take over those of a member that closes or
// crashes.
//
// Errors: [ErrEmptyTopic], *aggregate.InvalidIDError for a topic that can be no aggregate type,
// [*ConfigError] for that of the subscriber's own poison queue, [ErrSubscriberClosed],
// journal.ErrTableMissing, journal.ErrAccess.
func (sub *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	if sub.isClosed() {
		return nil, ErrSubscriberClosed
	}
	since := sub.now()
	seen, err := sub.check(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %q: %w", topic, err)
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.closed {
		return nil, ErrSubscriberClosed
	}
	work, cancel := context.WithCancel(ctx)
	m := sub.newMember(ctx, topic, since)
	sub.members[m] = struct{}{}
	sub.running.Add(2)
	go func() {
		defer sub.running.Done()
		defer cancel()
		m.run(work, seen)
		sub.mu.Lock()
		defer sub.mu.Unlock()
		delete(sub.members, m)
	}()
	go func() {
		defer sub.running.Done()
		defer cancel()
		select {
		case <-sub.closing:
		case <-work.Done():
		}
	}()
	return m.out, nil
}

// now is the present for a group that begins now: as early as it may be, if the clock is known less
// well than to a second.
func (sub *Subscriber) now() time.Time {
	j := sub.config.Journal
	return j.Config().Now().Add(-max(0, eventlog.Of(j).Ahead()-time.Second))
}

// SubscribeInitialize shows ahead of Subscribe what would keep it from working: a topic that can be
// none, a missing table, missing access. There is nothing else to prepare: a new group starts where
// [Config.Start] says when it first subscribes, at the beginning of the journal by default.
func (sub *Subscriber) SubscribeInitialize(topic string) error {
	if _, err := sub.check(context.Background(), topic); err != nil {
		return fmt.Errorf("initialize subscription to %q: %w", topic, err)
	}
	return nil
}

func (sub *Subscriber) isClosed() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.closed
}

// Stats returns the counts of all subscriptions.
func (sub *Subscriber) Stats() Stats { return sub.stats.read() }

// Close ends all subscriptions: no further message goes out, handlers have
// [Config.CloseTimeout] to ack what they have, positions are stored and shards
// released. It may be called repeatedly, and returns when all is done.
func (sub *Subscriber) Close() error {
	sub.mu.Lock()
	if !sub.closed {
		sub.closed = true
		close(sub.closing)
	}
	sub.mu.Unlock()
	sub.running.Wait()
	return nil
}

// check reads the membership, which shows whether the table is there, with one round trip.
func (sub *Subscriber) check(ctx context.Context, topic string) (checkpoint.Membership, error) {
	if topic == "" {
		return checkpoint.Membership{}, ErrEmptyTopic
	}
	if _, err := aggregate.NewID(topic, "x"); err != nil {
		return checkpoint.Membership{}, err
	}
	if policy := sub.config.Failures; policy.kind == poisonQueue && policy.topic == topic {
		return checkpoint.Membership{}, &ConfigError{"Failures", fmt.Sprintf(
			"has %q as the topic of the poison queue, which is subscribed to: each event that fails would become one more; name another topic", topic)}
	}
	if sub.config.Broadcast {
		return checkpoint.Membership{}, nil
	}
	var membership checkpoint.Membership
	err := dynamo.Start(ctx, func(ctx context.Context) (err error) {
		membership, err = sub.checkpoint.ReadMembership(ctx, checkpoint.Key{Group: sub.config.ConsumerGroup, Topic: topic})
		return err
	})
	return membership, err
}
