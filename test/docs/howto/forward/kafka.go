package forward

import (
	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/forward"
)

// OverKafka publishes with the key as the partition key. It waits for all replicas.
func OverKafka(brokers []string, logger watermill.LoggerAdapter) (message.Publisher, error) {
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Producer.RequiredAcks = sarama.WaitForAll
	return kafka.NewPublisher(kafka.PublisherConfig{
		Brokers: brokers, OverwriteSaramaConfig: config,
		Marshaler: kafka.NewWithPartitioningMarshaler(forward.Key),
	}, logger)
}
