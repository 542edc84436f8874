package publisher

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Publisher appends messages to the journal. It is safe for concurrent use. Use one for each
// process, since only messages of the same Publisher share commits.
type Publisher struct {
	config  Config
	journal *engine.Engine
	append  func(context.Context, storage.Commit) (storage.Receipt, error) // of the journal
	logger  watermill.LoggerAdapter

	ctx    context.Context // context of all commits; ends with the Publisher
	cancel context.CancelCauseFunc

	publishes sync.WaitGroup // calls of Publish
	drains    sync.WaitGroup // goroutines that write; one for each stream with a queue

	resolveFor time.Duration

	closing sync.Once
	cut     atomic.Bool // a Publish has failed since Shutdown canceled the commits

	mu      sync.Mutex // guards the fields below, the streams' queues and the batches in them
	closed  bool
	streams streams
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher returns a Publisher. It makes no requests. A nil logger logs nothing.
//
// Errors: [*ConfigError].
func NewPublisher(config Config, logger watermill.LoggerAdapter) (*Publisher, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Publisher{
		config:  config,
		journal: config.Journal.Internal(),
		append:  config.Journal.Internal().Append,
		logger:  logger.With(watermill.LogFields{"publisher_stream": config.StreamID}),
		ctx:     ctx,
		cancel:  cancel,

		resolveFor: resolveFor,
		streams:    newStreams(config.CachedStreams),
	}, nil
}

// streamOf returns the id of the stream for a message without an id.
func (p *Publisher) streamOf(msg *message.Message) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(msg.UUID))                           // it never fails
	if n := int(hash.Sum32() % uint32(p.config.Streams)); n > 0 { //nolint:gosec // a small number
		return fmt.Sprintf("%s-%d", p.config.StreamID, n+1)
	}
	return p.config.StreamID
}

// StreamID returns the id of the aggregate, in every topic, for messages without an id.
func (p *Publisher) StreamID() string { return p.config.StreamID }

// Publish appends messages to aggregates, and returns when they are durable. The topic is the
// aggregate type. The Publisher does not change messages, and callers must not change them after
// Publish. Without messages it returns nil.
//
// Errors: [ErrPublisherClosed], [*TopicError] and [*MessageError], with nothing written;
// [*PublishError], which lists the messages that are not written.
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
		if p.ctx.Err() != nil {
			p.cut.Store(true)
		}
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

// Close refuses new messages, and waits for messages that are being published. After
// [Config].CloseTimeout it cancels their commits. The calls of Publish whose messages are not
// written return errors. Close returns [ErrCloseTimeout] if there are any. Close can be called
// again, and at any time. Each call returns when all work has ended, with the same error.
func (p *Publisher) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.config.CloseTimeout)
	defer cancel()
	return p.Shutdown(ctx)
}

// Shutdown is Close with the end of a context as its limit, in place of [Config].CloseTimeout. The
// limit of the first call of Close or Shutdown counts.
func (p *Publisher) Shutdown(ctx context.Context) error {
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
		select {
		case <-ended:
		case <-ctx.Done():
		}
		p.cancel(ErrPublisherClosed)
		<-ended
	})
	if p.cut.Load() {
		return ErrCloseTimeout
	}
	return nil
}
