package story

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
func tellLate(ctx context.Context, client *dynamodb.Client, s *service.Service, logger watermill.LoggerAdapter) (left uint64, err error) {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: s.Journal, ConsumerGroup: lateGroup, MaxInFlight: 16}, logger)
	if err != nil {
		return 0, err
	}
	again, err := projection.New(client, projection.Config{}, s.History.EventHandlers()...)
	if err != nil {
		return 0, err
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return 0, err
	}
	for _, topic := range service.Topics() {
		router.AddConsumerHandler(lateGroup+"/"+topic, topic, sub, func(msg *message.Message) error {
			if record, ok := subscriber.RecordFromContext(msg.Context()); ok && record.Number > beginnings {
				return nil
			}
			return again.Handle(msg)
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	<-router.Running()
	err = caughtUp(ctx, s, lateGroup, service.Topics()...)
	return again.Stats().Dropped, errors.Join(err, router.Close(), <-ended)
}
