// Package wake is the code of docs/howto/wake-other-processes.md.
package wake

import (
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	natsgo "github.com/nats-io/nats.go"

	"github.com/millrace-dev/millrace/wakeup"
)

// OverJetStream returns wake-ups over NATS JetStream, for servers whose users may not use core
// NATS. The consumer is ephemeral: the server removes it when the process has ended. The stream
// must exist with the name of the topic, and should keep its messages for a minute only.
func OverJetStream(url string, logger watermill.LoggerAdapter) (wakeup.Config, error) {
	options := []natsgo.Option{natsgo.MaxReconnects(-1)}
	pub, err := nats.NewPublisher(nats.PublisherConfig{URL: url, NatsOptions: options}, logger)
	if err != nil {
		return wakeup.Config{}, err
	}
	sub, err := nats.NewSubscriber(nats.SubscriberConfig{
		URL: url, NatsOptions: options,
		JetStream: nats.JetStreamConfig{SubscribeOptions: []natsgo.SubOpt{natsgo.DeliverNew()}},
	}, logger)
	if err != nil {
		return wakeup.Config{}, errors.Join(err, pub.Close())
	}
	return wakeup.Config{Publisher: pub, Subscriber: sub}, nil
}

// OverNATS returns wake-ups over core NATS. Each subscription without a queue group receives each
// message, and the server stores none.
func OverNATS(url string, logger watermill.LoggerAdapter) (wakeup.Config, error) {
	core := nats.JetStreamConfig{Disabled: true}
	options := []natsgo.Option{natsgo.MaxReconnects(-1)} // a server may restart
	pub, err := nats.NewPublisher(nats.PublisherConfig{URL: url, NatsOptions: options, JetStream: core}, logger)
	if err != nil {
		return wakeup.Config{}, err
	}
	sub, err := nats.NewSubscriber(nats.SubscriberConfig{URL: url, NatsOptions: options, JetStream: core}, logger)
	if err != nil {
		return wakeup.Config{}, errors.Join(err, pub.Close())
	}
	return wakeup.Config{Publisher: pub, Subscriber: sub}, nil
}
