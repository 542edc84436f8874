package service

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/examples/internal/live"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/journal"
)

// NewFeed makes what tells the browsers of this process which consumer's orders have changed. The instance names the process, see live.Config.
func (s *Service) NewFeed(instance string, logger watermill.LoggerAdapter) (*live.Feed, error) {
	return live.New(live.Config{
		Journal: s.Journal, Group: HistoryGroup, Topics: Topics(), Instance: instance, Key: s.consumerOf, Logger: logger,
	})
}

// consumerOf asks the history, as tickets and deliveries do not know the consumer. What happens to them before the history has the order is no
// news to anybody yet.
func (s *Service) consumerOf(ctx context.Context, event *journal.Record) (string, error) {
	o, err := s.History.FindOrder(ctx, event.Aggregate.Value)
	if errors.Is(err, history.ErrNotFound) {
		return "", nil
	}
	return o.ConsumerID, err
}
