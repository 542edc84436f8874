package wake

import (
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/redis/go-redis/v9"

	"github.com/millrace-dev/millrace/wakeup"
)

// OverRedis returns wake-ups over a Redis stream. Each subscriber without a consumer group receives
// each message. The stream keeps about the last thousand.
func OverRedis(address string, logger watermill.LoggerAdapter) (wakeup.Config, error) {
	options := &redis.Options{Addr: address}
	pub, err := redisstream.NewPublisher(redisstream.PublisherConfig{
		Client: redis.NewClient(options), Maxlens: map[string]int64{wakeup.DefaultTopic: 1000},
	}, logger)
	if err != nil {
		return wakeup.Config{}, err
	}
	sub, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
		Client: redis.NewClient(options), DisableIndefiniteInitialBlock: true,
	}, logger)
	if err != nil {
		return wakeup.Config{}, errors.Join(err, pub.Close())
	}
	return wakeup.Config{Publisher: pub, Subscriber: sub}, nil
}
