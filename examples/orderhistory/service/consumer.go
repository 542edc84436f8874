package service

import (
	"context"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// consumerGroup names what the positions in the journal belong to. A group with another name would be a new one, and
// start at the beginning unless the config says otherwise.
const consumerGroup = "order-history"

// Consumer brings the history up to date with the events of the orders, as long as it runs. Several
// consumers share the logical shards of the journal.
type Consumer struct {
	router     *message.Router
	subscriber *subscriber.Subscriber
	projection *projection.Projection
}

// NewConsumer makes a consumer. Journal and ConsumerGroup of the config are filled in.
func (s *Service) NewConsumer(
	config subscriber.Config, logger watermill.LoggerAdapter, middleware ...message.HandlerMiddleware,
) (*Consumer, error) {
	config.Journal, config.ConsumerGroup = s.Journal, consumerGroup
	sub, err := subscriber.NewSubscriber(config, logger)
	if err != nil {
		return nil, err
	}
	view, err := projection.New(s.client, projection.Config{}, s.History.Reactions()...)
	if err != nil {
		return nil, err
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return nil, err
	}
	router.AddMiddleware(middleware...)
	router.AddConsumerHandler("order-history", order.Definition.Type(), sub, view.Handle)
	return &Consumer{router: router, subscriber: sub, projection: view}, nil
}

// Run consumes until the context ends or Close is called.
func (c *Consumer) Run(ctx context.Context) error { return c.router.Run(ctx) }

// Running is closed once Run has begun to consume.
func (c *Consumer) Running() <-chan struct{} { return c.router.Running() }

// Close ends Run. It returns when the handlers have finished what they are at, positions are stored and its
// shards are released, so other consumers go on at once.
func (c *Consumer) Close() error { return c.router.Close() }

// Stats tells what the consumer has done so far.
func (c *Consumer) Stats() (subscriber.Stats, projection.Stats) {
	return c.subscriber.Stats(), c.projection.Stats()
}
