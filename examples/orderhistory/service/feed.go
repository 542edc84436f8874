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

// Feed makes what notifies the browsers of this process which consumer's orders have changed.
func (s *Service) Feed() (*live.Feed, error) {
	return s.Live(live.Config{Group: HistoryGroup, Topics: Topics(), Key: s.consumerOf})
}

// settle bounds how long the history may take to show what its group has applied, which is over in
// milliseconds.
const settle = time.Second

// consumerOf asks the history, as tickets and deliveries do not know the consumer. What happens to
// them before the history has the order is no news to anybody yet. The creation of an order is, and
// tells the consumer itself.
func (s *Service) consumerOf(ctx context.Context, event *journal.Record) (string, error) {
	settling, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	o, err := s.History.AwaitOrder(settling, event.Aggregate, event.Number)
	switch {
	case o.ConsumerID != "": // shown, or too late: who is told too early looks again after a while
		return o.ConsumerID, nil
	case event.EventType == order.Created{}.EventType():
		return creator(event)
	case errors.Is(err, history.ErrNotFound), ctx.Err() == nil && settling.Err() != nil:
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
