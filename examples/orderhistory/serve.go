package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/subscriber"
)

// tokenKeyEnv names the environment variable with the key that signs page tokens, which servers that stand in for
// one another share.
const tokenKeyEnv = "ORDERHISTORY_TOKEN_KEY"

// shutdownTimeout is how long requests have to come to their end.
const shutdownTimeout = 10 * time.Second

// serve runs the REST API and the consumer until the context ends.
func serve(ctx context.Context, client *dynamodb.Client, address string, out, log io.Writer) error {
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := service.Open(ctx, client, service.Config{TokenKey: []byte(os.Getenv(tokenKeyEnv))})
	if err != nil {
		return err
	}
	consumer, err := s.NewConsumer(subscriber.Config{}, watermill.NewSlogLogger(logger))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           api.New(api.Config{Orders: s.Orders, History: s.History, Logger: logger}),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}

	ended := make(chan error, 2)
	go func() { ended <- consumer.Run(context.WithoutCancel(ctx)) }()
	go func() { ended <- server.Serve(listener) }()
	usage(out, listener.Addr().String())

	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended: // one of the two cannot go on
		ended <- nil
	}
	// Requests first: what they commit, the consumer can still see.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err = errors.Join(err, server.Shutdown(stop), consumer.Close())
	for range cap(ended) {
		if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	}
	return err
}

func usage(out io.Writer, address string) {
	fmt.Fprintf(out, `Serving orders on http://%[1]s until interrupted. Try

  curl -i http://%[1]s/orders -d '{"orderId": "first", "consumerId": "ada", "restaurant": "Ajanta",
    "lines": [{"name": "Chicken Vindaloo", "quantity": 2, "priceCents": 1250}]}'
  curl -X POST http://%[1]s/orders/first/approve
  curl -X POST http://%[1]s/orders/first/pick-up
  curl http://%[1]s/orders/first
  curl 'http://%[1]s/consumers/ada/orders?status=APPROVED&keyword=vindaloo&pageSize=10'
`, address)
}
