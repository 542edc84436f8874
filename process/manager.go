package process

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Manager runs the processes of a [Definition]. It is safe for concurrent use, in any number of
// programs.
type Manager[S any] struct {
	definition Definition[S]
	journal    *engine.Engine
	processes  *repository.Repository[S]
	client     Client
	config     Config
	ownClock   bool // Config.Now was given
	history    history.History
	queues     *queues
	sendings   sendings
	stats      counters
}

// Stats counts the work of a manager since it was made.
type Stats struct {
	Steps    uint64 // stored steps
	Ignored  uint64 // inputs without anything to do
	Repeated uint64 // inputs that had been handled before
	Commands uint64 // sent commands, including repetitions
	Fired    uint64 // timeouts that were handled
	// Failures of Run: of a timeout, of stored commands, or of a poll.
	Failed uint64
	// Polls of Run for timeouts and commands that are due.
	Polls uint64
}

type counters struct{ steps, ignored, repeated, commands, fired, failed, polls atomic.Uint64 }

// New returns a manager. It makes no requests. Errors: [*ConfigError], [*DefinitionError], and
// those of [repository.New].
func New[S any](j *journal.Journal, client Client, d Definition[S], config Config) (*Manager[S], error) {
	if client == nil {
		return nil, &ConfigError{"client", "is nil: pass a *dynamodb.Client"}
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	today, err := history.New(config.Codec, config.Definitions)
	if err != nil {
		return nil, &ConfigError{"Definitions", "cannot be used: " + err.Error()}
	}
	processes, err := repository.New(j, d.aggregate, config.Repository)
	if err != nil {
		return nil, err
	}
	ownClock := config.Now != nil
	if !ownClock {
		config.Now = j.Config().Now
	}
	m := &Manager[S]{
		definition: d, journal: j.Internal(), processes: processes, client: bounded{client, j.Internal().Observe},
		config: config, ownClock: ownClock, history: today,
	}
	m.queues = newQueues(m.client, d.Type(), config)
	return m, nil
}

// Stats returns the current counts.
func (m *Manager[S]) Stats() Stats {
	return Stats{
		Steps: m.stats.steps.Load(), Ignored: m.stats.ignored.Load(), Repeated: m.stats.repeated.Load(),
		Commands: m.stats.commands.Load(), Fired: m.stats.fired.Load(), Failed: m.stats.failed.Load(), Polls: m.stats.polls.Load(),
	}
}

// Repository returns the repository of the processes. Only the manager should write to it.
func (m *Manager[S]) Repository() *repository.Repository[S] { return m.processes }

// Type returns the type of the processes. It makes no request.
func (m *Manager[S]) Type() string { return m.processes.Type() }

// States yields the states of a process after some of its events, as [repository.Repository.States]
// of [Manager.Repository] does. Manager implements [repository.AnyRepository] by this method and
// [Manager.Type].
func (m *Manager[S]) States(ctx context.Context, id string, q repository.StatesQuery) iter.Seq2[repository.StateAfter, error] {
	return m.processes.States(ctx, id, q)
}

// Handle handles the event in a message, and returns nil when its step is stored and its commands
// are sent. It is a message.NoPublishHandlerFunc. It takes messages of a
// [github.com/millrace-dev/millrace/subscriber]. Messages of other subscribers need a UUID that
// stays the same when they are delivered again, and the event type in the metadata "name".
//
// After an error, some of the work may be done. The rest is done when the message is delivered
// again. Commands of a stored step are also sent after [Config].RetryAfter. Handle takes no longer
// than RetryAfter for each event, even if connections are dead or the publisher hangs. Its error is
// then a context.DeadlineExceeded.
//
// Errors: [ErrNoID], [ErrUnrecorded], [ErrInvalidStep], [*UnknownTimeoutError],
// [*TooManyTimeoutsError], and the errors of the reaction, the codec, repository.Repository.Save,
// the marshaler, the publisher and the SDK.
func (m *Manager[S]) Handle(msg *message.Message) error {
	if msg == nil {
		return ErrNoID
	}
	inputs, err := m.inputs(msg)
	for _, in := range inputs {
		if err == nil {
			err = m.handle(msg.Context(), in)
		}
	}
	subscriber.SetNackReason(msg.Context(), err)
	return err
}

func (m *Manager[S]) handle(ctx context.Context, in Input) error {
	key, ok, err := m.definition.key(in)
	if err == nil && ok {
		ctx, cancel := context.WithTimeout(ctx, m.config.RetryAfter)
		defer cancel()
		in.Process = key
		err = m.step(ctx, in, nil)
	}
	switch {
	case err == nil && !ok, isIgnored(err):
		m.stats.ignored.Add(1)
		return nil
	case err != nil:
		return fmt.Errorf("process %s %q: event %s (%s): %w", m.definition.Type(), key, in.ID, in.Type, err)
	}
	return nil
}

// maxInputID leaves room for a suffix in a command id, which has at most 512 bytes.
const maxInputID = 480

// inputs returns the inputs for a message: one event, or the events that upcasters return for it.
func (m *Manager[S]) inputs(msg *message.Message) ([]Input, error) {
	if msg.UUID == "" {
		return nil, ErrNoID
	}
	in := Input{ID: msg.UUID}
	if r, ok := subscriber.RecordFromContext(msg.Context()); ok {
		in.ID, in.Type, in.payload = r.EventID, r.EventType, r.Payload
		in.Source, in.Number, in.OccurredAt, in.Metadata = r.Aggregate, r.Number, r.OccurredAt, r.Metadata
	} else {
		in.Type, in.payload, in.Metadata = msg.Metadata.Get(subscriber.NameKey), msg.Payload, aggregate.Metadata(msg.Metadata)
		in.Source = aggregate.ID{Type: msg.Metadata.Get(subscriber.AggregateTypeKey), Value: msg.Metadata.Get(subscriber.AggregateIDKey)}
		in.Number, _ = strconv.ParseUint(msg.Metadata.Get(subscriber.SequenceNumberKey), 10, 64)
		in.OccurredAt, _ = time.Parse(time.RFC3339, msg.Metadata.Get(subscriber.OccurredAtKey))
	}
	if len(in.ID) > maxInputID {
		in.ID = uuid.NewSHA1(derived, []byte(in.ID)).String()
	}
	return upcast(m.history, in)
}

// upcast returns the inputs for an input with a stored event: one event, or the events that
// upcasters return for it.
func upcast(h history.History, in Input) ([]Input, error) {
	in.codec = h.Codec(in.Source.Type)
	events, err := h.Upcast(in.Source.Type, aggregate.EncodedEvent{Type: in.Type, Payload: in.payload})
	if err != nil {
		return nil, err
	}
	var inputs []Input
	for i, event := range events {
		part := in
		part.Type, part.payload = event.Type, event.Payload
		if i > 0 {
			part.ID = fmt.Sprintf("%s/%d", in.ID, i+1)
		}
		inputs = append(inputs, part)
	}
	return inputs, nil
}

// step calls the reaction of a process and stores its step. If another input was stored first, it
// repeats that on the newer state. Fired is the timeout if the input is one.
func (m *Manager[S]) step(ctx context.Context, in Input, fired *timeoutRow) error {
	ctx = in.withCause(ctx)
	if m.config.Middleware == nil {
		return m.stepWithRetries(ctx, in, fired)
	}
	id := aggregate.ID{Type: m.definition.Type(), Value: in.Process}
	return m.config.Middleware(ctx, id, in, func(ctx context.Context) error { return m.stepWithRetries(ctx, in, fired) })
}

// stepWithRetries repeats stepOnce while another input is stored first.
func (m *Manager[S]) stepWithRetries(ctx context.Context, in Input, fired *timeoutRow) error {
	most := uint64(m.config.MaxAttempts - 1) //nolint:gosec // not negative
	again := backoff.WithContext(backoff.WithMaxRetries(retry.Pauses(5*time.Millisecond, 100*time.Millisecond, 0), most), ctx)
	return backoff.Retry(func() error {
		err := m.stepOnce(ctx, in, fired)
		var refused *journal.WriteRefusedError
		if fired != nil && errors.As(err, &refused) && refused.Table == m.config.Table && refused.Code == "ConditionalCheckFailed" {
			err = errNotSet
		}
		if err != nil && !errors.Is(err, journal.ErrConflict) {
			return backoff.Permanent(err)
		}
		return err
	}, again)
}

func (m *Manager[S]) stepOnce(ctx context.Context, in Input, fired *timeoutRow) error {
	process, err := m.processes.Load(ctx, in.Process)
	if errors.Is(err, journal.ErrNotFound) {
		process, err = m.processes.NewAggregate(in.Process)
	}
	if errors.As(err, new(*journal.DeletedError)) {
		return errDeleted
	}
	if errors.Is(err, journal.ErrKeyDestroyed) {
		return errKeyDestroyed
	}
	if err != nil {
		return err
	}
	// The reaction receives a copy, since it may change maps and slices by mistake.
	own, err := m.processes.Copy(process)
	if err != nil {
		return err
	}
	step, err := m.definition.react(own.State, process.Version > 0, in)
	if isIgnored(err) && !errors.Is(err, errEnded) {
		// The input is not delivered again. It may follow from a step that other readers see before
		// the process shows it. So check that the process has not changed.
		if err := m.journal.Unchanged(ctx, []storage.Place{{Aggregate: process.ID, Version: process.Version}}); err != nil {
			return err
		}
	}
	if err != nil {
		return m.repeated(ctx, process, in, err)
	}
	p, err := m.plan(ctx, process, in, step, fired)
	if err != nil {
		return err
	}
	_, err = m.processes.Save(ctx, process, step.events, repository.WithCommandID(in.ID), repository.WithWrites(p.writesOf))
	switch {
	case errors.As(err, new(*journal.DuplicateCommandError)):
		m.stats.repeated.Add(1)
		return m.sendStored(ctx, process.ID, in.ID)
	case err != nil:
		return err
	}
	m.stats.steps.Add(1)
	if fired != nil {
		fired.step = p.timeouts
	}
	return m.send(ctx, process.ID, in.ID, p.commands)
}

// repeated checks whether an input that the reaction refuses now was handled before, in an earlier
// state of the process. If so, it sends the commands of that step. Otherwise it returns the
// refusal.
func (m *Manager[S]) repeated(ctx context.Context, process repository.Aggregate[S], in Input, refusal error) error {
	if process.Version == 0 {
		return refusal
	}
	_, known, err := m.journal.Command(ctx, process.ID, in.ID)
	if err != nil {
		return err
	}
	if !known {
		return refusal
	}
	m.stats.repeated.Add(1)
	return m.sendStored(ctx, process.ID, in.ID)
}

// withCause returns a context with the metadata for the results of an input. A subscriber of this
// module, or a middleware for tracing, may have added metadata to ctx already.
func (in Input) withCause(ctx context.Context) context.Context {
	carried := aggregate.Metadata{}
	switch {
	case in.Timeout != "":
		maps.Copy(carried, in.Metadata)
	case aggregate.MetadataFromContext(ctx)["traceparent"] == "":
		envelope.CopyTraceKeys(in.Metadata, carried)
	}
	carried[aggregate.CausationIDKey] = in.ID
	if carried[aggregate.CorrelationIDKey] = in.Metadata[aggregate.CorrelationIDKey]; carried[aggregate.CorrelationIDKey] == "" {
		carried[aggregate.CorrelationIDKey] = in.ID
	}
	return aggregate.ContextWithMetadata(ctx, carried)
}

func (m *Manager[S]) fields(id aggregate.ID, more watermill.LogFields) watermill.LogFields {
	return more.Add(watermill.LogFields{"process_type": id.Type, "process_id": printable.Text(id.Value)})
}
