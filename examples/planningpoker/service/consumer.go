package service

import (
	"cmp"
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// ViewGroup names what the positions in the journal belong to. A group with another name would be a
// new one, and start at the beginning unless the config says otherwise.
const ViewGroup = "room-view"

// Consumer brings the view up to date with the events of the rooms, as long as it runs. Several
// consumers share the logical shards of the journal.
type Consumer struct {
	router     *message.Router
	subscriber *subscriber.Subscriber
	projection *projection.Projection
}

// A page is live, so what other processes commit is looked for more often than by default, which
// costs some 40 read units a second at most for each process, group and four shards. An event that
// the live read misses is found by a trailing read, at an age of 0.5 seconds or of trailingDelay,
// which must be longer than clock differences and index delay together.
const (
	pollInterval    = 50 * time.Millisecond
	maxPollInterval = 200 * time.Millisecond
	trailingDelay   = 4 * time.Second
)

// closeTimeout is how long a handler has to finish what it is at.
const closeTimeout = 10 * time.Second

func prompt(config subscriber.Config) subscriber.Config {
	config.PollInterval = cmp.Or(config.PollInterval, pollInterval)
	config.MaxPollInterval = cmp.Or(config.MaxPollInterval, maxPollInterval)
	config.TrailingDelay = cmp.Or(config.TrailingDelay, trailingDelay)
	return config
}

// NewConsumer makes a consumer. Journal is filled in, and so are ConsumerGroup and intervals that
// are not set.
func (s *Service) NewConsumer(config subscriber.Config, logger watermill.LoggerAdapter) (*Consumer, error) {
	config = prompt(config)
	config.Journal = s.Journal
	config.ConsumerGroup = cmp.Or(config.ConsumerGroup, ViewGroup)
	sub, err := subscriber.NewSubscriber(config, logger)
	if err != nil {
		return nil, err
	}
	rooms, err := projection.New(s.client, projection.Config{Definitions: []aggregate.AnyDefinition{room.Definition}}, s.View.Reactions()...)
	if err != nil {
		return nil, err
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout}, logger)
	if err != nil {
		return nil, err
	}
	router.AddConsumerHandler(ViewGroup, room.Definition.Type(), sub, rooms.Handle)
	return &Consumer{router: router, subscriber: sub, projection: rooms}, nil
}

// Run consumes until the context ends or Close is called.
func (c *Consumer) Run(ctx context.Context) error { return c.router.Run(ctx) }

// Running is closed once Run has begun to consume.
func (c *Consumer) Running() <-chan struct{} { return c.router.Running() }

// Close ends Run. It returns when the handlers have finished what they are at, positions are stored
// and its shards are released, so other consumers go on at once.
func (c *Consumer) Close() error { return c.router.Close() }

// Stats reports what the consumer has done so far.
func (c *Consumer) Stats() (subscriber.Stats, projection.Stats) {
	return c.subscriber.Stats(), c.projection.Stats()
}

// Collectors are those of its metrics.
func (c *Consumer) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		metrics.NewSubscriberCollector(c.subscriber, metrics.SubscriberConfig{ConsumerGroup: ViewGroup}),
		metrics.NewProjectionCollector(c.projection, metrics.ProjectionConfig{Name: ViewGroup}),
	}
}
