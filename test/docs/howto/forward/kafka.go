package forward

import (
	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/forward"
)

// OverKafka publishes with the key as the partition key. It waits for all replicas, and sends one
// request at a time to a broker, so that a repeated request is not overtaken.
func OverKafka(brokers []string, logger watermill.LoggerAdapter) (message.Publisher, error) {
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	return kafka.NewPublisher(kafka.PublisherConfig{
		Brokers: brokers, OverwriteSaramaConfig: config,
		Marshaler: kafka.NewWithPartitioningMarshaler(forward.Key),
	}, logger)
}

// FromKafka receives as a consumer group of Kafka. A new group begins with the oldest message, and
// not with the newest as by default. The version of the protocol is one that Kafka 4 accepts too.
func FromKafka(brokers []string, group string, logger watermill.LoggerAdapter) (message.Subscriber, error) {
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Version, config.Consumer.Offsets.Initial = sarama.V2_3_0_0, sarama.OffsetOldest
	return kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: group, OverwriteSaramaConfig: config, Unmarshaler: kafka.DefaultMarshaler{},
	}, logger)
}
