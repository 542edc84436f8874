package forward

import (
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
