package publisher

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/eventlog"
)

// Publisher appends messages to the journal. It is safe for concurrent use, and one of them in a
// process is enough: only what goes through the same Publisher shares commits.
type Publisher struct {
	config  Config
	journal eventlog.Log
	logger  watermill.LoggerAdapter

	ctx    context.Context // of all commits; ends with the Publisher
	cancel context.CancelCauseFunc

	publishes sync.WaitGroup // calls of Publish
	drains    sync.WaitGroup // goroutines, one for each stream with a queue

	resolveFor time.Duration

	closing  sync.Once
	closeErr error

	mu      sync.Mutex // guards what follows, the streams' queues and the batches in them
	closed  bool
	streams streams
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher makes a Publisher. It does not touch the database. A nil logger logs nothing.
//
// Errors: [*ConfigError].
func NewPublisher(config Config, logger watermill.LoggerAdapter) (*Publisher, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Publisher{
		config:  config,
		journal: eventlog.Of(config.Journal),
		logger:  logger.With(watermill.LogFields{"publisher_stream": config.StreamID}),
		ctx:     ctx,
		cancel:  cancel,

		resolveFor: resolveFor,
		streams:    newStreams(config.CachedStreams),
	}, nil
}

// StreamID is the id, in every topic, of the aggregate that takes the messages without an id.
func (p *Publisher) StreamID() string { return p.config.StreamID }

// Publish appends messages to the aggregates of a type, which is the topic, and returns when they
// are durable. Watermill's rule is that a published message is not changed any more; the Publisher
// does not change it either. No messages are no work and no error.
//
// Errors: [ErrPublisherClosed], [*TopicError] and [*MessageError] with nothing written; else
// [*PublishError], which lists what is not written.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if !p.enter() {
		return ErrPublisherClosed
	}
	defer p.publishes.Done()
	if len(messages) == 0 {
		return nil
	}
	batches, err := p.prepare(topic, messages)
	if err != nil {
		return err
	}
	if failed := p.writeAll(batches); len(failed) > 0 {
		return &PublishError{Topic: topic, Failed: failed}
	}
	return nil
}

func (p *Publisher) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.publishes.Add(1) // never after Close has begun to wait
	return true
}

// Close refuses new messages and waits for those that are being published, at most
// [Config.CloseTimeout]: then it cuts their commits off and returns [ErrCloseTimeout]. It may be
// called again, and at any time; each call returns when all work has ended, with the same error.
func (p *Publisher) Close() error {
	p.closing.Do(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()

		ended := make(chan struct{})
		go func() {
			p.publishes.Wait() // only they start drains
			p.drains.Wait()
			close(ended)
		}()
		timeout := time.NewTimer(p.config.CloseTimeout)
		defer timeout.Stop()
		select {
		case <-ended:
		case <-timeout.C:
			p.closeErr = ErrCloseTimeout
		}
		p.cancel(ErrPublisherClosed)
		<-ended
	})
	return p.closeErr
}
