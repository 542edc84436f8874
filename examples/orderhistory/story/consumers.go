package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/subscriber"
)

// leaseDuration is how long another consumer waits before it takes over the shards of one that
// crashed. It is short, so that the story is short.
const leaseDuration = 2 * time.Second

// consumers run one after the other. Each is like a separate process: its connection to the
// database can be cut.
type consumers struct {
	client    *dynamodb.Client
	config    millrace.Config
	log       io.Writer
	throttler *throttler
	lag       lag
	echo      echo

	all []*consumer
}

type consumer struct {
	*service.Service
	connection *connection
	stop       func() error
}

// start starts the next consumer.
func (c *consumers) start(ctx context.Context) error {
	client, wire := c.throttler.connect(c.client)
	config := c.config
	config.Logger = watermill.NewSlogLogger(slog.New(slog.NewTextHandler(
		&whileAlive{c.log, wire}, &slog.HandlerOptions{Level: slog.LevelWarn})))
	config.Subscriber = func(_ string, c *subscriber.Config) {
		c.MaxInFlight = 16 // more does not help with an emulator on a small machine
		c.Timing.LeaseDuration, c.Timing.TrailingDelay = leaseDuration, 2*time.Second
	}
	config.Middleware = []message.HandlerMiddleware{c.lag.measure, c.echo.repeat}
	s, err := service.Open(ctx, client, config)
	if err == nil {
		err = s.Consume()
	}
	if err != nil {
		return fmt.Errorf("start a consumer: %w", err)
	}
	stop, err := s.Start(ctx)
	if err != nil {
		return fmt.Errorf("start a consumer: %w", err)
	}
	c.all = append(c.all, &consumer{s, wire, stop})
	return nil
}

// interrupt restarts the consumer after a third of the orders, and lets it crash after another
// third.
func (c *consumers) interrupt(work, ctx context.Context, progress <-chan struct{}, orders int) error {
	for n := 1; n <= orders; n++ {
		select {
		case <-progress:
		case <-work.Done():
			return nil // the actors report why
		}
		var err error
		switch n {
		case orders / 3:
			err = c.afterSome(ctx, orders/2, c.restart)
		case 2 * orders / 3:
			err = c.afterSome(ctx, orders/2, c.crash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterSome calls interrupt while the consumer works, after it has received some messages.
func (c *consumers) afterSome(ctx context.Context, messages int, interrupt func(context.Context) error) error {
	err := wait(ctx, func(context.Context) (bool, error) {
		sub, _ := c.current().Stats()
		return sub.Delivered >= uint64(messages), nil
	})
	if err != nil {
		return fmt.Errorf("consumer %d does not get its messages: %w", len(c.all), err)
	}
	return interrupt(ctx)
}

func (c *consumers) current() *consumer { return c.all[len(c.all)-1] }

// restart closes the consumer as a deployment does, and starts the next one.
func (c *consumers) restart(ctx context.Context) error {
	if err := c.current().stop(); err != nil {
		return fmt.Errorf("close the consumer: %w", err)
	}
	return c.start(ctx)
}

// crash cuts the connection of the consumer while it works: it can neither finish nor release
// anything. The next one starts at once, and takes the shards over when the lease of the first one
// has expired.
func (c *consumers) crash(ctx context.Context) error {
	c.current().connection.cut.Store(true)
	return c.start(ctx)
}

// close closes all consumers, also the one that crashed.
func (c *consumers) close() error {
	var failures []error
	for _, each := range c.all {
		err := each.stop()
		if !each.connection.cut.Load() {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// totals are the counts of all consumers.
type totals struct {
	delivered           []uint64 // by consumer
	applied, duplicates uint64
}

func (c *consumers) totals() (t totals) {
	for _, each := range c.all {
		sub, view := each.Stats()
		t.delivered = append(t.delivered, sub.Delivered)
		t.applied += view.Applied
		t.duplicates += sub.Duplicates + view.Dropped
	}
	return t
}

// whileAlive writes the log of a consumer until it crashes.
type whileAlive struct {
	log        io.Writer
	connection *connection
}

func (w *whileAlive) Write(line []byte) (int, error) {
	if w.connection.cut.Load() {
		return len(line), nil
	}
	return w.log.Write(line)
}
