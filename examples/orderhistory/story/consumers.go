package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/subscriber"
)

// leaseDuration is how long the successor of a consumer that crashed waits before it takes the shards over. It is short so that
// the story is.
const leaseDuration = 2 * time.Second

// consumers run one after the other, each like a process of its own, with a connection to the database
// that can be cut off.
type consumers struct {
	client *dynamodb.Client
	config service.Config
	log    io.Writer
	lag    lag

	all []*consumer
}

type consumer struct {
	*service.Consumer
	connection *connection
	ended      chan error
}

// start begins the next consumer.
func (c *consumers) start(ctx context.Context) error {
	options := c.client.Options()
	wire := &connection{client: options.HTTPClient}
	options.HTTPClient = wire
	client := dynamodb.New(options)
	s, err := service.Open(ctx, client, c.config)
	if err != nil {
		return fmt.Errorf("start a consumer: %w", err)
	}
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(
		&whileAlive{c.log, wire}, &slog.HandlerOptions{Level: slog.LevelWarn})))
	next, err := s.NewConsumer(subscriber.Config{
		MaxInFlight:   16, // as much as an emulator on a small machine has use for
		LeaseDuration: leaseDuration,
		TrailingDelay: 2 * time.Second,
	}, logger, c.lag.measure)
	if err != nil {
		return fmt.Errorf("start a consumer: %w", err)
	}
	started := &consumer{Consumer: next, connection: wire, ended: make(chan error, 1)}
	c.all = append(c.all, started)
	go func() { started.ended <- started.Run(ctx) }()
	select {
	case <-started.Running():
		return nil
	case err := <-started.ended:
		started.ended <- err
		return fmt.Errorf("start a consumer: %w", err)
	}
}

// interrupt restarts the consumer after a third of the commands, and has it crash after another.
func (c *consumers) interrupt(work, ctx context.Context, progress <-chan struct{}, commands int) error {
	for n := 1; n <= commands; n++ {
		select {
		case <-progress:
		case <-work.Done():
			return nil // the writers say why
		}
		var err error
		switch n {
		case commands / 3:
			err = c.afterSome(ctx, commands/10, c.restart)
		case 2 * commands / 3:
			err = c.afterSome(ctx, commands/10, c.crash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterSome interrupts the consumer in the middle of its work: once it has had some messages.
func (c *consumers) afterSome(ctx context.Context, messages int, interrupt func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if sub, _ := c.current().Stats(); sub.Delivered >= uint64(messages) {
			return interrupt(ctx)
		}
		select {
		case <-waiting.Done():
			return fmt.Errorf("%w: consumer %d does not get its messages", ErrWrong, len(c.all))
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *consumers) current() *consumer { return c.all[len(c.all)-1] }

// restart closes the consumer as a deployment does, and starts the next.
func (c *consumers) restart(ctx context.Context) error {
	if err := c.current().Close(); err != nil {
		return fmt.Errorf("close the consumer: %w", err)
	}
	return c.start(ctx)
}

// crash cuts the consumer off in the middle of what it does: it can neither finish nor release anything. The
// next one starts at once, and gets the shards when the one before has given no sign of life for leaseDuration.
func (c *consumers) crash(ctx context.Context) error {
	c.current().connection.cut.Store(true)
	return c.start(ctx)
}

// close ends all consumers, also what is left of one that crashed.
func (c *consumers) close() error {
	var failures []error
	for _, each := range c.all {
		err := each.Close()
		if !each.connection.cut.Load() {
			failures = append(failures, err, <-each.ended)
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

// connection is an HTTP client that can be cut off. What is under way then may still have an effect, but no
// reply comes back: that is how a crash looks to the database.
type connection struct {
	client dynamodb.HTTPClient
	cut    atomic.Bool
}

var errCut = errors.New("the process has crashed")

func (c *connection) Do(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	response, err := c.client.Do(r)
	if c.cut.Load() {
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errCut
	}
	return response, err
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

// lag collects how long after it was committed each event was applied.
type lag struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *lag) measure(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		produced, err := next(msg)
		if record, ok := subscriber.RecordFromContext(msg.Context()); ok && err == nil {
			l.mu.Lock()
			l.all = append(l.all, time.Since(record.OccurredAt))
			l.mu.Unlock()
		}
		return produced, err
	}
}
