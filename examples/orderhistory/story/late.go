package story

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// lateGroup knows nothing of what the history has been told.
const lateGroup = "late"

// beginnings is how many events of each aggregate the late group tells. It stops there, so that an
// attribute that it has set back would stay so.
const beginnings = 2

// tellLate tells the history the first events of everything once more, while it is told the rest:
// another consumer group with the same handlers on the same table. It returns how many old events
// were left out.
func tellLate(ctx context.Context, of *consumers) (left uint64, err error) {
	s, err := service.Open(ctx, of.client, of.config)
	if err != nil {
		return 0, err
	}
	again, err := projection.New(of.client, projection.Config{}, s.History.EventHandlers()...)
	if err != nil {
		return 0, err
	}
	group := millrace.Group{Name: lateGroup, Topics: service.Topics(), Configure: func(c *subscriber.Config) { c.MaxInFlight = 16 }}
	err = s.Handle(group, func(msg *message.Message) error {
		if record, ok := subscriber.RecordFromContext(msg.Context()); ok && record.Number > beginnings {
			return nil
		}
		return again.Handle(msg)
	})
	if err != nil {
		return 0, err
	}
	stop, err := s.Start(ctx)
	if err != nil {
		return 0, err
	}
	err = caughtUp(ctx, s, lateGroup, service.Topics()...)
	return again.Stats().Dropped, errors.Join(err, stop())
}
