package receive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// ErrNoID reports that a message has no UUID, or that Config.ID has returned an empty id, so that a
// second delivery could not be recognised. Nothing was stored.
var ErrNoID = errors.New("the message has no id: set Config.ID to a function that returns one, such as the partition and offset in Kafka")

// ErrUndecodable reports that Config.Check has refused a message, or that a function of the Config
// panics with it. Nothing was stored.
var ErrUndecodable = errors.New("the message cannot be decoded")

// SourcePrefix is the prefix of metadata of the received message whose keys the journal uses
// itself, such as "source_occurred_at" and "source_sequence_number". It is repeated if the message
// has metadata of that name too.
const SourcePrefix = "source_"

// Receiver stores messages of another Pub/Sub in the journal. It is safe for concurrent use.
type Receiver struct {
	config Config
	byID   bool // Config.ID was set
	logger watermill.LoggerAdapter

	unknown                 sync.Map     // names that were reported
	reported                atomic.Int64 // number of these
	failures                atomic.Int64 // in a row
	stored, ignored, failed atomic.Uint64
}

// Stats counts the work of a [Receiver] since it was made.
type Stats struct {
	Stored  uint64 // messages that were stored, with repeated deliveries
	Ignored uint64 // messages of unknown names, with Config.IgnoreUnknown
	Failed  uint64 // attempts at messages that have failed
}

// New returns a Receiver. It makes no requests. A nil logger logs nothing. Errors: [*ConfigError].
func New(config Config, logger watermill.LoggerAdapter) (*Receiver, error) {
	byID := config.ID != nil
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	return &Receiver{config: config, byID: byID, logger: logger}, nil
}

// Stats returns the current counts.
func (r *Receiver) Stats() Stats {
	return Stats{Stored: r.stored.Load(), Ignored: r.ignored.Load(), Failed: r.failed.Load()}
}

// Topic returns Config.Topic.
func (r *Receiver) Topic() string { return r.config.Topic }

// Handle stores a message, and returns when it is durable. It is a message.NoPublishHandlerFunc for
// the other Pub/Sub. After a failure it waits before it returns, see [Config].Pause, or until the
// context of the message ends. Messages that can never be stored go to Config.DeadLetter.
//
// Errors: [ErrNoID], [ErrUndecodable], and those of publisher.Publisher.Publish and
// Config.DeadLetter.
func (r *Receiver) Handle(msg *message.Message) error {
	err := r.store(msg)
	if err != nil {
		r.failed.Add(1)
		err = r.reject(msg, err)
	}
	if err == nil {
		r.failures.Store(0)
		return nil
	}
	pause := retry.Backoff(r.config.Pause, r.config.MaxPause, int(r.failures.Add(1)))
	r.logger.Error("Cannot store a received message; the other Pub/Sub delivers it again", err,
		watermill.LogFields{"message_uuid": printable.Text(msg.UUID), "journal_topic": r.config.Topic, "pause": pause.String()})
	retry.Sleep(msg.Context(), pause)
	return err
}

// reject passes a message that can never be stored to Config.DeadLetter. It returns nil if that has
// taken it, and the reason with the error of DeadLetter otherwise.
func (r *Receiver) reject(msg *message.Message, reason error) error {
	never := errors.Is(reason, ErrNoID) || errors.Is(reason, ErrUndecodable) || errors.As(reason, new(*publisher.MessageError)) ||
		// These are about the stream of its key.
		errors.Is(reason, journal.ErrKeyDestroyed) || errors.As(reason, new(*journal.DeletedError))
	if !never || r.config.DeadLetter == nil {
		return reason
	}
	if err := r.deadLetter(msg, reason); err != nil {
		return errors.Join(reason, fmt.Errorf("dead letter: %w", err))
	}
	r.logger.Error("A received message cannot be stored, and went to Config.DeadLetter", reason,
		watermill.LogFields{"message_uuid": printable.Text(msg.UUID), "journal_topic": r.config.Topic})
	return nil
}

// deadLetter calls Config.DeadLetter. A panic is an error, so that a pause follows.
func (r *Receiver) deadLetter(msg *message.Message, reason error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it panics: %v\n%s", cause, debug.Stack())
		}
	}()
	return r.config.DeadLetter(msg, reason)
}

// store stores a message, unless it is ignored.
func (r *Receiver) store(msg *message.Message) error {
	stored, err := r.prepare(msg)
	if err != nil || stored == nil {
		return err
	}
	if err := r.config.Publisher.Publish(r.config.Topic, stored); err != nil {
		return err
	}
	r.stored.Add(1)
	return nil
}

// prepare returns the message to store, or nil if it is ignored.
func (r *Receiver) prepare(msg *message.Message) (stored *message.Message, err error) {
	// Without this, the other Pub/Sub would deliver the message again and again without a pause.
	defer func() {
		if cause := recover(); cause != nil {
			stored, err = nil, fmt.Errorf("%w: a function of the Config panics: %v\n%s", ErrUndecodable, cause, debug.Stack())
		}
	}()
	name := r.config.Name(msg)
	if r.config.IgnoreUnknown && !slices.Contains(r.config.Names, name) {
		r.ignored.Add(1)
		r.reportUnknown(name)
		return nil, nil
	}
	id := r.config.ID(msg)
	if id == "" {
		return nil, ErrNoID
	}
	if r.config.DeadLetter != nil && r.config.Check != nil {
		if err := r.config.Check(msg); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUndecodable, err)
		}
	}
	if r.byID { // ids of other systems are unique in their topic only
		id = message.SubscribeTopicFromCtx(msg.Context()) + "/" + id
	}
	if len(id) > maxID || !utf8.ValidString(id) {
		id = digest(id)
	}
	stored = message.NewMessage(id, msg.Payload)
	for key, value := range msg.Metadata {
		switch {
		case key == envelope.NameKey: // see below
		case envelope.Stored(key):
			stored.Metadata[key] = value
		default:
			stored.Metadata[freeKey(msg.Metadata, key)] = value
		}
	}
	stored.Metadata[envelope.NameKey] = name
	if key := r.config.Key(msg); key != "" {
		if _, err := aggregate.NewID(r.config.Topic, key); err != nil {
			key = digest(key)
		}
		stored.Metadata[envelope.AggregateIDKey] = key
	}
	return stored, nil
}

// freeKey returns a reserved key with SourcePrefix, which is repeated if the sender has such a key.
func freeKey(metadata message.Metadata, key string) string {
	for taken := true; taken; _, taken = metadata[key] {
		key = SourcePrefix + key
	}
	return key
}

// maxID is the maximum length of a command id in bytes. Package command executes a message with its
// UUID as the command id.
const maxID = 512

// digest returns a text that replaces an id or a key that cannot be stored.
func digest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:])
}

// mostReported is the number of unknown names that are logged.
const mostReported = 100

// reportUnknown logs an unknown name once.
func (r *Receiver) reportUnknown(name string) {
	if r.reported.Load() >= mostReported {
		return
	}
	if _, known := r.unknown.LoadOrStore(name, true); known {
		return
	}
	r.reported.Add(1)
	r.logger.Info("Received messages are ignored: their name has no handler",
		watermill.LogFields{"name": printable.Text(name), "journal_topic": r.config.Topic, "handled_names": r.config.Names})
}
