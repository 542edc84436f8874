package wakeup

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/retry"
)

// Receiver wakes the groups, broadcasts and process managers of this process when another process
// has committed. It is safe for concurrent use.
type Receiver struct {
	config Config
	logger watermill.LoggerAdapter

	messages, aggregates, ignored, invalid atomic.Uint64
}

// ReceiverStats counts what a [Receiver] has received.
type ReceiverStats struct {
	Messages   uint64 // messages received
	Aggregates uint64 // aggregates that they reported
	Ignored    uint64 // messages about other journals
	Invalid    uint64 // messages that are no wake-ups or too large, and aggregates with invalid ids
}

// NewReceiver returns a receiver of wake-ups for the readers of config.Journal. It receives nothing
// before [Receiver.Run]. A nil logger logs nothing. Errors: [*ConfigError].
func NewReceiver(config Config, logger watermill.LoggerAdapter) (*Receiver, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Subscriber == nil {
		return nil, &ConfigError{"Subscriber", "is nil; pass a subscriber that delivers each message to each process"}
	}
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	return &Receiver{config: config, logger: logger}, nil
}

// Stats returns what the receiver has received so far.
func (r *Receiver) Stats() ReceiverStats {
	return ReceiverStats{Messages: r.messages.Load(), Aggregates: r.aggregates.Load(), Ignored: r.ignored.Load(), Invalid: r.invalid.Load()}
}

// Run receives wake-ups until ctx ends. If the subscriber cannot subscribe, or closes its channel,
// Run logs that and subscribes again after a pause of 1 second, which grows to a minute. Groups
// poll normally meanwhile. Run acks each message, because a wake-up is of no use when it comes
// again.
func (r *Receiver) Run(ctx context.Context) {
	pauses := retry.Pauses(time.Second, time.Minute, 0)
	for ctx.Err() == nil {
		messages, err := r.config.Subscriber.Subscribe(ctx, r.config.Topic)
		if err == nil {
			if r.receiveAll(ctx, messages) {
				pauses.Reset()
			}
			err = errEnded
		}
		if ctx.Err() != nil {
			return
		}
		r.logger.Error("Receives no wake-ups, will subscribe again; groups poll normally", err, watermill.LogFields{"topic": r.config.Topic})
		retry.Sleep(ctx, pauses.NextBackOff())
	}
}

var errEnded = errors.New("the subscriber has closed its channel")

// receiveAll receives messages until their channel is closed or ctx ends. It reports whether there
// was one.
func (r *Receiver) receiveAll(ctx context.Context, messages <-chan *message.Message) (some bool) {
	if r.config.PollRarely {
		defer r.config.Journal.Internal().PollRarely(r.config.MaxPollInterval)()
	}
	for {
		select {
		case <-ctx.Done():
			return some
		case msg, open := <-messages:
			if !open {
				return some
			}
			r.receive(msg.Payload)
			msg.Ack()
			some = true
		}
	}
}

// receive passes on what a message reports.
func (r *Receiver) receive(payload []byte) {
	r.messages.Add(1)
	versions, invalid, err := read(r.config.Journal, payload)
	r.invalid.Add(uint64(invalid)) //nolint:gosec // a count
	switch {
	case errors.Is(err, ErrOtherJournal):
		r.ignored.Add(1)
	case err != nil:
		r.invalid.Add(1)
		r.logger.Debug("Ignored a message that is no wake-up", watermill.LogFields{"topic": r.config.Topic, "err": err})
	}
	for id, version := range versions {
		r.aggregates.Add(1)
		r.config.Journal.Internal().Hint(id, version)
	}
}
