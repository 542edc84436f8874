package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Executor executes decisions on aggregates. *repository.Repository implements it.
type Executor[S any] interface {
	Execute(ctx context.Context, id string, decide aggregate.Decision[S], given ...repository.Option) (repository.Aggregate[S], error)
}

// Route returns the id of the aggregate for a command, and the decision to execute on it.
type Route[C, S any] func(command *C) (id string, decide aggregate.Decision[S])

// ErrNoID reports that a message has no UUID, so that a second delivery could not be recognised.
// Nothing was written.
var ErrNoID = errors.New("the message of the command has no UUID: set one, such as watermill.NewUUID()")

// Handler returns a handler for a cqrs.CommandProcessor. It executes each command of type C on the
// aggregate that route returns. It executes a command once, however often its message is delivered,
// since the UUID of the message is the command id ([repository.WithCommandID]).
//
// The events carry the correlation id and the trace of the message, and its UUID as their causation
// id, with any Pub/Sub.
//
// A command that is refused is passed to [OnRefused] and acked, since it would be refused again.
// Without OnRefused it is logged at Info level, see [WithLogger]. The decision can refuse a
// command. It is also refused if the aggregate was deleted ([*journal.DeletedError]), if its key
// was destroyed ([journal.ErrKeyDestroyed]), or if its id was used for another content
// ([*repository.CommandMismatchError]). Err of the [repository.RefusedError] is then that error.
//
// The handler returns all other errors of Execute, so the message is nacked. See
// [repository.RefusedError] for errors that another delivery does not resolve.
//
// Errors of the handler: [ErrNoID], and those of repository.Repository.Execute and of [OnRefused].
func Handler[C, S any](name string, executor Executor[S], route Route[C, S], options ...Option[C]) cqrs.CommandHandler {
	return newHandler(name, options, func(ctx context.Context, command *C, given []repository.Option) ([]string, error) {
		id, decide := route(command)
		_, err := executor.Execute(ctx, id, decide, given...)
		return []string{id}, err
	})
}

// newHandler returns a handler that executes commands. The function execute also returns the ids of
// the command's aggregates.
func newHandler[C any](
	name string, options []Option[C], execute func(ctx context.Context, command *C, given []repository.Option) (ids []string, err error),
) cqrs.CommandHandler {
	var o handlerOptions[C]
	for _, option := range options {
		if option != nil {
			option(&o)
		}
	}
	return cqrs.NewCommandHandler(name, func(ctx context.Context, command *C) error {
		msg := cqrs.OriginalMessageFromCtx(ctx)
		if msg == nil || msg.UUID == "" {
			return fmt.Errorf("command %T: %w", command, ErrNoID)
		}
		ctx = causedBy(ctx, msg)
		given := []repository.Option{repository.WithCommandID(msg.UUID)}
		if o.execute != nil {
			given = append(given, o.execute(command)...)
		}
		ids, err := execute(ctx, command, given)
		refused := refusalIn(err, ids)
		switch {
		case refused == nil:
			return err
		case o.refused == nil:
			o.logRefused(ctx, name, cqrs.FullyQualifiedStructName(command), msg, refused)
			return nil
		default:
			return o.refused(ctx, command, refused)
		}
	})
}

// refusalIn returns the refusal if err is one for the aggregates with these ids, and nil otherwise.
func refusalIn(err error, ids []string) *repository.RefusedError {
	// A wrapped RefusedError is the error of another call, made by the decision.
	if refused, ok := err.(*repository.RefusedError); ok { //nolint:errorlint // see above
		return refused
	}
	var id aggregate.ID
	var deleted *journal.DeletedError
	var unreadable *journal.EncodingError
	var mismatch *repository.CommandMismatchError
	var same *repository.SameParticipantError
	switch {
	case errors.As(err, &same):
		id = same.ID
	case errors.As(err, &mismatch):
		id = mismatch.ID
	case errors.As(err, &deleted):
		id = deleted.ID
	case errors.As(err, &unreadable) && errors.Is(unreadable, journal.ErrKeyDestroyed):
		id = unreadable.Aggregate
	}
	// An option may make calls on other aggregates.
	if id.Value == "" || !slices.Contains(ids, id.Value) {
		return nil
	}
	return &repository.RefusedError{ID: id, Err: err}
}

// ErrUnknown is the error of a function of [Dispatch] for a command that has no handler.
var ErrUnknown = errors.New("no handler handles the command")

// Dispatch returns a function that passes each message to the handler of its command. It is for
// messages that come without a message.Subscriber, for example to a function in AWS Lambda. Use a
// cqrs.CommandProcessor otherwise.
//
// Errors: a cqrs.DuplicateCommandHandlerError for two handlers of one type of command. Errors of
// the function: [ErrUnknown], and those of the marshaler and of the handlers.
func Dispatch(marshaler cqrs.CommandEventMarshaler, handlers ...cqrs.CommandHandler) (message.NoPublishHandlerFunc, error) {
	byName := map[string]cqrs.CommandHandler{}
	for _, h := range handlers {
		name := marshaler.Name(h.NewCommand())
		if byName[name] != nil {
			return nil, cqrs.DuplicateCommandHandlerError{CommandName: name}
		}
		byName[name] = h
	}
	return func(msg *message.Message) error {
		name := marshaler.NameFromMessage(msg)
		h := byName[name]
		if h == nil {
			return fmt.Errorf("%w %s", ErrUnknown, printable.Quote(name))
		}
		command := h.NewCommand()
		if err := marshaler.Unmarshal(msg, command); err != nil {
			return err
		}
		return h.Handle(cqrs.CtxWithOriginalMessage(msg.Context(), msg), command)
	}, nil
}

// causedBy returns a context with the metadata that the events take from the message. The metadata
// of ctx may belong to the event whose handler has sent the command.
func causedBy(ctx context.Context, msg *message.Message) context.Context {
	metadata := aggregate.MetadataFromContext(ctx)
	envelope.CopyTraceKeys(aggregate.Metadata(msg.Metadata), metadata)
	if metadata[aggregate.CorrelationIDKey] == "" {
		metadata[aggregate.CorrelationIDKey] = msg.UUID
	}
	metadata[aggregate.CausationIDKey] = msg.UUID
	return aggregate.ContextWithMetadata(ctx, metadata)
}

// Option configures a [Handler] or a [TransactionHandler]. A nil option has no effect.
type Option[C any] func(*handlerOptions[C])

type handlerOptions[C any] struct {
	logger  watermill.LoggerAdapter // nil for that of the message's subscriber
	refused func(ctx context.Context, command *C, refused *repository.RefusedError) error
	execute func(command *C) []repository.Option
}

// OnRefused returns an option to call f for each command that is refused, for example to reply to
// the sender. If f returns an error, the message is nacked and delivered again. So f
// may be called more than once for one message.
func OnRefused[C any](f func(ctx context.Context, command *C, refused *repository.RefusedError) error) Option[C] {
	return func(o *handlerOptions[C]) { o.refused = f }
}

// WithRepositoryOptions returns an option to pass options to the call of Execute, such as
// [repository.WithWrites].
func WithRepositoryOptions[C any](options func(command *C) []repository.Option) Option[C] {
	return func(o *handlerOptions[C]) { o.execute = options }
}

// WithLogger returns an option to log refused commands to a logger. Default: the logger of the
// message's subscriber, if the message comes from package subscriber. Otherwise nothing is logged.
func WithLogger[C any](logger watermill.LoggerAdapter) Option[C] {
	return func(o *handlerOptions[C]) { o.logger = logger }
}

func (o *handlerOptions[C]) logRefused(ctx context.Context, handler, command string, msg *message.Message, refused *repository.RefusedError) {
	logger := o.logger
	if logger == nil {
		logger = handled.LoggerOf(ctx)
	}
	logger.Info("Command is refused, and is not delivered again", watermill.LogFields{
		"aggregate_type": printable.Text(refused.ID.Type), "aggregate_id": printable.Text(refused.ID.Value),
		"command": command, "handler_name": handler, "message_uuid": printable.Text(msg.UUID), "reason": refused.Error(),
	})
}
