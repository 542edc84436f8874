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

// lateGroup is another group than the history's, so it has its own positions.
const lateGroup = "late"

// beginnings is the number of events of each aggregate that the late group handles. It handles no
// more, so that an attribute that it set back would stay wrong.
const beginnings = 2

// replayLate handles the first events of all aggregates again, while the history is updated: by
// another consumer group with the same handlers on the same table. It returns the number of old
// events that were dropped.
func replayLate(ctx context.Context, of *consumers) (left uint64, err error) {
	s, err := service.Open(ctx, of.client, of.config)
	if err != nil {
		return 0, err
	}
	again, err := projection.New(of.client, projection.Config{}, s.History.EventHandlers()...)
	if err != nil {
		return 0, err
	}
	group := millrace.Group{Name: lateGroup, Topics: service.Topics(), Subscriber: func(c *subscriber.Config) { c.MaxInFlight = 16 }}
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
