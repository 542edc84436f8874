package forward

import (
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	natsgo "github.com/nats-io/nats.go"
)

// OverNATS publishes to JetStream. The stream must exist. TrackMsgId sets Nats-Msg-Id to the UUID,
// so that the stream drops duplicates within its duplicate window.
func OverNATS(url string, logger watermill.LoggerAdapter) (message.Publisher, error) {
	return nats.NewPublisher(nats.PublisherConfig{
		URL: url, NatsOptions: []natsgo.Option{natsgo.MaxReconnects(-1)},
		JetStream: nats.JetStreamConfig{TrackMsgId: true},
	}, logger)
}

// FromNATS receives from JetStream. Name identifies the program: JetStream continues where it was.
// Without ManualAck the client also acks messages that were not stored when the program stopped.
// Without MaxAckPending, such a message comes after later ones.
func FromNATS(url, name string, logger watermill.LoggerAdapter) (message.Subscriber, error) {
	return nats.NewSubscriber(nats.SubscriberConfig{
		URL: url, NatsOptions: []natsgo.Option{natsgo.MaxReconnects(-1)},
		JetStream: nats.JetStreamConfig{DurablePrefix: name, SubscribeOptions: []natsgo.SubOpt{
			natsgo.ManualAck(), natsgo.AckExplicit(), natsgo.AckWait(10 * time.Second), natsgo.MaxAckPending(1),
		}},
	}, logger)
}
