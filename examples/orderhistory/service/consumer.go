package service

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/policies"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// The consumer groups, which name what the positions in the journal belong to. A group with another
// name would be a new one, and start at the beginning unless the config says otherwise.
const (
	HistoryGroup  = "order-history"
	PoliciesGroup = "policies"
)

// Consumer handles the events of the services, as long as it runs: the policies react to them, and
// the history is brought up to date. Several consumers share the logical shards of the journal.
type Consumer struct {
	router     *message.Router
	history    *subscriber.Subscriber
	policies   *subscriber.Subscriber
	projection *projection.Projection
}

// closeTimeout is how long handlers have to finish what they are at.
const closeTimeout = 10 * time.Second

// NewConsumer makes a consumer. Journal and ConsumerGroup of the config are filled in, and the
// middleware is around all handlers.
func (s *Service) NewConsumer(
	config subscriber.Config, logger watermill.LoggerAdapter, middleware ...message.HandlerMiddleware,
) (*Consumer, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout}, logger)
	if err != nil {
		return nil, err
	}
	router.AddMiddleware(subscriber.NackReason) // so that a parked order shows why
	router.AddMiddleware(middleware...)
	c := &Consumer{router: router}

	config.Journal, config.ConsumerGroup = s.Journal, HistoryGroup
	if c.history, err = subscriber.NewSubscriber(config, logger); err != nil {
		return nil, err
	}
	if c.projection, err = projection.New(s.client, projection.Config{}, s.History.EventHandlers()...); err != nil {
		return nil, err
	}
	for _, topic := range Topics() {
		router.AddConsumerHandler(HistoryGroup+"/"+topic, topic, c.history, c.projection.Handle)
	}

	config.ConsumerGroup = PoliciesGroup
	if c.policies, err = subscriber.NewSubscriber(config, logger); err != nil {
		return nil, err
	}
	react := policies.Policies{Orders: s.Orders, Tickets: s.Tickets, Deliveries: s.Deliveries}
	router.AddConsumerHandler(PoliciesGroup+"/order", order.Definition.Type(), c.policies, react.OnOrder)
	router.AddConsumerHandler(PoliciesGroup+"/ticket", ticket.Definition.Type(), c.policies, react.OnTicket)
	return c, nil
}

// Topics are those of the three services.
func Topics() []string {
	return []string{order.Definition.Type(), ticket.Definition.Type(), delivery.Definition.Type()}
}

// Run consumes until the context ends or Close is called.
func (c *Consumer) Run(ctx context.Context) error { return c.router.Run(ctx) }

// Running is closed once Run has begun to consume.
func (c *Consumer) Running() <-chan struct{} { return c.router.Running() }

// ErrNotRunning says that the consumer has not begun, or has ended.
var ErrNotRunning = errors.New("the consumer does not run")

// Runs reports whether it consumes. Errors: [ErrNotRunning].
func (c *Consumer) Runs() error {
	select {
	case <-c.Running():
		if !c.router.IsClosed() {
			return nil
		}
	default:
	}
	return ErrNotRunning
}

// Close ends Run, once [Consumer.Running] is closed; until then the context does. It returns when
// the handlers have finished what they are at, positions are stored and its shards are released, so
// other consumers go on at once.
func (c *Consumer) Close() error { return c.router.Close() }

// Stats reports what the consumer has done for the history so far.
func (c *Consumer) Stats() (subscriber.Stats, projection.Stats) {
	return c.history.Stats(), c.projection.Stats()
}

// Metrics are its collectors for a Prometheus registry.
func (c *Consumer) Metrics() []prometheus.Collector {
	return []prometheus.Collector{
		metrics.NewSubscriberCollector(c.history, metrics.SubscriberConfig{ConsumerGroup: HistoryGroup}),
		metrics.NewSubscriberCollector(c.policies, metrics.SubscriberConfig{ConsumerGroup: PoliciesGroup}),
		metrics.NewProjectionCollector(c.projection, metrics.ProjectionConfig{Name: HistoryGroup}),
	}
}
