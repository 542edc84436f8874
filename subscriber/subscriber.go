package subscriber

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/history"
)

// Subscriber is a Watermill subscriber that tails a journal. It is safe for concurrent use.
type Subscriber struct {
	config     Config
	broadcast  bool // it has no group
	limits     limits
	checkpoint *checkpoint.Store
	history    history.History
	logger     watermill.LoggerAdapter
	stats      counters

	mu            sync.Mutex
	subscriptions map[*subscription]struct{}
	closed        bool
	closing       chan struct{}
	running       sync.WaitGroup
}

var (
	_ message.Subscriber           = (*Subscriber)(nil)
	_ message.SubscribeInitializer = (*Subscriber)(nil)
)

// NewSubscriber returns a subscriber of a consumer group. A nil logger logs nothing. NewSubscriber
// starts nothing and makes no request. It logs at Info level if the journal's RetryBudget is not
// below [Timing.TrailingDelay]. Errors: [*ConfigError].
func NewSubscriber(config Config, logger watermill.LoggerAdapter) (*Subscriber, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	return newSubscriber(config, false, logger)
}

func newSubscriber(config Config, broadcast bool, logger watermill.LoggerAdapter) (*Subscriber, error) {
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	if budget := config.Journal.Config().RetryBudget; budget >= config.Timing.TrailingDelay {
		// A commit whose outcome is unknown keeps its date while it is repeated. After that time
		// its events appear in a part of the tail that the last trailing read has passed.
		logger.Info("The journal's RetryBudget is not below TrailingDelay: commits that are repeated that long may be delivered late, "+
			"with their aggregate's next event or by a reconciliation; lower RetryBudget or raise TrailingDelay", watermill.LogFields{
			"consumer_group": config.ConsumerGroup, "retry_budget": budget, "trailing_delay": config.Timing.TrailingDelay,
		})
	}
	today, err := history.New(nil, config.Definitions)
	if err != nil {
		return nil, err
	}
	return &Subscriber{
		config: config, broadcast: broadcast, limits: defaultLimits(config.StateBytes), checkpoint: checkpoint.New(config.Journal), history: today, logger: logger,
		subscriptions: map[*subscription]struct{}{}, closing: make(chan struct{}),
	}, nil
}

// Subscribe returns the events of all aggregates of the type topic. The events of an aggregate are
// delivered in order: the next one after the ack of the one before. Messages of different
// aggregates are delivered concurrently, up to [Config.MaxInFlight], if the receiver accepts them.
// A receiver that handles each message before it receives the next handles one at a time.
//
// A nacked message is delivered again after [Config.NackResendSleep]. The channel is closed after
// ctx ends or the Subscriber is closed. Several subscriptions of one group to one topic, in one
// process or many, are members: they share the shards, and take over the shards of a member that
// closes or crashes.
//
// Errors: [ErrEmptyTopic], *aggregate.InvalidIDError for a topic that is no valid aggregate type,
// [*ConfigError] for the topic of the subscriber's own poison queue, and for a topic whose
// definition splits events while [Config.Positions] is set, [*PositionsError] if the group has
// positions at another place, [ErrSubscriberClosed], journal.ErrTableMissing, journal.ErrAccess.
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
	if b := burstOf(ctx); b != nil && !b.join(1) {
		return nil, fmt.Errorf("subscribe to %q: %w", topic, errBurstEnded)
	}
	s := sub.newSubscription(ctx, topic)
	s.since = since
	work, cancel := context.WithCancel(ctx)
	run := func() { s.run(work, seen) }
	if s.burst != nil {
		cancel()
		work, cancel = context.WithDeadline(ctx, s.burst.deadline.Add(-s.burst.reserve(s.config.CloseTimeout)))
		unwatch := s.watch() // now, so that no commit of another subscription is missed
		run = func() { s.catchUp(work, unwatch) }
	}
	sub.subscriptions[s] = struct{}{}
	sub.running.Add(2)
	go func() {
		defer sub.running.Done()
		defer cancel()
		run()
		sub.mu.Lock()
		defer sub.mu.Unlock()
		delete(sub.subscriptions, s)
	}()
	go func() {
		defer sub.running.Done()
		defer cancel()
		select {
		case <-sub.closing:
		case <-work.Done():
		}
	}()
	return s.out, nil
}

// WaitJoined waits until each subscription that was made before the call has joined its consumer
// group, or has ended. Then the group exists, so that package groups finds it. Subscribe itself
// does not wait for that. A subscription that cannot join logs errors and tries again, so limit the
// wait with ctx. WaitJoined makes no request. Errors: [ErrSubscriberClosed], and the error of ctx.
func (sub *Subscriber) WaitJoined(ctx context.Context) error {
	sub.mu.Lock()
	subscriptions := slices.Collect(maps.Keys(sub.subscriptions))
	sub.mu.Unlock()
	for _, s := range subscriptions {
		select {
		case <-s.member.Joined():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if sub.isClosed() {
		return ErrSubscriberClosed
	}
	return nil
}

// now returns the start time of a group that begins now. If the clock is known less precisely than
// to a second, it returns the earliest possible time.
func (sub *Subscriber) now() time.Time {
	j := sub.config.Journal
	return j.Config().Now().Add(-max(0, j.Internal().Ahead()-time.Second))
}

// SubscribeInitialize returns the error that Subscribe would return for an invalid topic, a missing
// table or missing access. It prepares nothing: a new group begins when it first subscribes, where
// [Config.Start] says.
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

// Close ends all subscriptions. No further message is delivered, handlers have
// [Config.CloseTimeout] to ack their messages, positions are stored, and shards are released. Close
// returns when all of this is done. It may be called repeatedly. Its error is always nil.
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

// check validates the topic and reads the membership, in one round trip, which shows whether the
// table exists.
func (sub *Subscriber) check(ctx context.Context, topic string) (checkpoint.Membership, error) {
	if topic == "" {
		return checkpoint.Membership{}, ErrEmptyTopic
	}
	if _, err := aggregate.NewID(topic, "x"); err != nil {
		return checkpoint.Membership{}, err
	}
	if policy := sub.config.Failures; policy.kind == poisonQueue && policy.topic == topic {
		return checkpoint.Membership{}, &ConfigError{"Failures", fmt.Sprintf(
			"has %q as the topic of the poison queue, and subscribes to it: each event that fails would create another one; use another topic", topic)}
	}
	_, own := sub.config.Positions.(*tablePositions)
	for _, d := range sub.config.Definitions {
		if !own && !sub.broadcast && d.Type() == topic && d.Splits() {
			return checkpoint.Membership{}, &ConfigError{"Definitions", fmt.Sprintf("may split an event of %q into several messages, which have no "+
				"position for Config.Positions: leave the definition out, and pass it to the projection, which handles the event as a whole", topic)}
		}
	}
	switch inBurst := burstOf(ctx) != nil; {
	case sub.broadcast && inBurst:
		return checkpoint.Membership{}, errBroadcastInBurst
	case sub.broadcast || inBurst: // a burst reads the membership when it visits shards
		return checkpoint.Membership{}, nil
	}
	var membership checkpoint.Membership
	ctx = dynamo.OnSlowStart(ctx, func(err error) {
		sub.logger.Info(dynamo.SlowStart, watermill.LogFields{"topic": topic, "consumer_group": sub.config.ConsumerGroup, "err": err})
	})
	err := dynamo.Start(ctx, func(ctx context.Context) (err error) {
		membership, err = sub.checkpoint.ReadMembership(ctx, checkpoint.Key{Group: sub.config.ConsumerGroup, Topic: topic})
		return err
	})
	if err == nil {
		err = sub.accepts(topic, membership)
	}
	return membership, err
}

// accepts returns a [*PositionsError] if the group has positions at another place than this member.
func (sub *Subscriber) accepts(topic string, r checkpoint.Membership) error {
	if rows := rowsOf(sub.config.Positions); !r.MayHold(rows) {
		return &PositionsError{Group: sub.config.ConsumerGroup, Topic: topic, Stored: r.Rows.String(), Given: rows.String()}
	}
	return nil
}
