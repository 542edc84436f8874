package service

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
)

// Feed returns a feed that notifies the browsers of this process when a consumer's orders have
// changed.
func (s *Service) Feed() (*live.Feed, error) {
	return s.Live(live.Config{Group: HistoryGroup, Topics: Topics(), Key: s.consumerOf})
}

// indexDelay limits the wait until the history shows what its group has applied. Usually that takes
// milliseconds.
const indexDelay = time.Second

// consumerOf returns the consumer of an event. The events of tickets and deliveries do not contain
// the consumer, so it queries the history. If the history does not have the order yet, it returns
// "", and nobody is notified. Only the event that creates an order contains the consumer.
func (s *Service) consumerOf(ctx context.Context, event *journal.Record) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, indexDelay)
	defer cancel()
	o, err := s.History.AwaitOrder(waiting, event.Aggregate, event.Number)
	switch {
	// The order is shown, or the wait was too long: a browser that is notified too early queries
	// again later.
	case o.ConsumerID != "":
		return o.ConsumerID, nil
	case event.EventType == order.Created{}.EventType():
		return creator(event)
	case errors.Is(err, history.ErrNotFound), ctx.Err() == nil && waiting.Err() != nil:
		return "", nil
	}
	return "", err
}

func creator(event *journal.Record) (string, error) {
	decoded, err := order.Definition.Decode(event.EventType, event.Payload)
	if err != nil {
		return "", err
	}
	created, _ := decoded.(order.Created)
	return created.ConsumerID, nil
}
