// Package broker runs NATS with JetStream in a process, so that the examples need no other program.
package broker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
)

// Server is a running broker. Its messages are in a temporary folder.
type Server struct {
	server *server.Server
	folder string
}

// Serve starts a broker at a loopback address, with a stream for a topic.
func Serve(address, topic string) (*Server, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("other machines could publish to %s, use a loopback address such as 127.0.0.1:4222", address)
	}
	port := resolved.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	folder, err := os.MkdirTemp("", "millrace-nats-")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder}
	s.server, err = server.NewServer(&server.Options{Host: resolved.IP.String(), Port: port, NoSigs: true, JetStream: true, StoreDir: folder})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	go s.server.Start()
	if !s.server.ReadyForConnections(10 * time.Second) {
		return nil, errors.Join(fmt.Errorf("NATS cannot listen on %s: choose another address", address), s.Close())
	}
	if err := s.addStream(topic); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) addStream(topic string) error {
	connection, err := natsgo.Connect(s.URL())
	if err != nil {
		return err
	}
	defer connection.Close()
	js, err := connection.JetStream()
	if err == nil {
		_, err = js.AddStream(&natsgo.StreamConfig{Name: topic})
	}
	return err
}

// URL returns the address for clients.
func (s *Server) URL() string { return s.server.ClientURL() }

// Close stops the broker, and removes its messages.
func (s *Server) Close() error {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return os.RemoveAll(s.folder)
}

// NewPublisher returns a publisher. The stream drops messages with the same UUID within two
// minutes.
func NewPublisher(url string, logger watermill.LoggerAdapter) (message.Publisher, error) {
	return nats.NewPublisher(nats.PublisherConfig{
		URL: url, NatsOptions: []natsgo.Option{natsgo.MaxReconnects(-1)}, JetStream: nats.JetStreamConfig{TrackMsgId: true},
	}, logger)
}

// NewSubscriber returns a subscriber of all messages, in their order. NATS remembers under the name
// what it has acked. Without ManualAck the client also acks messages that were not stored when the
// program stopped. Without MaxAckPending, such a message comes after later ones.
func NewSubscriber(url, name string, logger watermill.LoggerAdapter) (message.Subscriber, error) {
	return nats.NewSubscriber(nats.SubscriberConfig{
		URL: url, NatsOptions: []natsgo.Option{natsgo.MaxReconnects(-1)},
		JetStream: nats.JetStreamConfig{DurablePrefix: name, SubscribeOptions: []natsgo.SubOpt{
			natsgo.ManualAck(), natsgo.AckExplicit(), natsgo.AckWait(10 * time.Second), natsgo.MaxAckPending(1),
		}},
	}, logger)
}
