package subscriber

import (
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// BroadcastConfig configures a broadcast, see [NewBroadcast]. Only Journal is required.
type BroadcastConfig struct {
	// Journal is the journal to read, as in [Config].
	Journal *journal.Journal

	// Start says where each subscription begins. Default: [Beginning].
	//
	// With [Now] and [At], the first event of an aggregate costs a read of its head and about
	// log2(n) read units.
	Start Start

	// EventTypes lists the types of events to deliver, as in [Config].
	EventTypes []string

	// Definitions lists the aggregates whose events are upcast before delivery, as in [Config].
	Definitions []aggregate.AnyDefinition

	// MaxInFlight limits the messages in handling, as in [Config].
	MaxInFlight int

	// BufferBytes limits the memory for events before their delivery, as in [Config].
	BufferBytes int

	// StateBytes limits the memory for aggregates, as in [Config]. In addition a subscription holds
	// about 100 bytes for each aggregate that has had events.
	StateBytes int

	// NackResendSleep and MaxNackResendSleep are the pauses after a nack, as in [Config].
	NackResendSleep, MaxNackResendSleep time.Duration

	// AckDeadline limits the time of a handler, as in [Config].
	AckDeadline time.Duration

	// Failures is [Block] or [PoisonQueue]. Others need a group to record events. Default: [Block].
	Failures FailurePolicy

	// PollInterval and MaxPollInterval are the pauses between two polls, as in [Timing].
	PollInterval, MaxPollInterval time.Duration

	// TrailingDelay is the age of events at the last trailing read, as in [Timing]. There is no
	// reconciliation: an event that appears in the tail later than that is delivered with the next
	// event of its aggregate.
	TrailingDelay time.Duration

	// CloseTimeout is the time that handlers have after Close, as in [Config].
	CloseTimeout time.Duration

	// Unmarshaler converts records to messages, as in [Config].
	Unmarshaler Unmarshaler
}

// NewBroadcast returns a subscriber whose subscriptions each receive all events, without a consumer
// group. It is for caches, for pages that show changes as they happen, and for replies to requests.
// It writes nothing to the database, and each new subscription begins at Start.
//
// A nil logger logs nothing. NewBroadcast starts nothing and makes no request. It logs at Info
// level if the journal's RetryBudget is not below TrailingDelay. Errors: [*ConfigError].
func NewBroadcast(config BroadcastConfig, logger watermill.LoggerAdapter) (*Subscriber, error) {
	c := config.config()
	if err := c.validateShared(); err != nil {
		return nil, err
	}
	if c.Failures.kind != block && c.Failures.kind != poisonQueue {
		return nil, &ConfigError{"Failures", "cannot be recorded by a broadcast; use Block or PoisonQueue"}
	}
	if err := c.Timing.validate(""); err != nil {
		return nil, err
	}
	return newSubscriber(c, true, logger)
}

// config returns the settings of a subscriber, with defaults. Those for positions and members have
// no effect on a broadcast.
func (c BroadcastConfig) config() Config {
	config := Config{
		Journal: c.Journal, Start: c.Start, EventTypes: c.EventTypes, Definitions: c.Definitions,
		MaxInFlight: c.MaxInFlight, BufferBytes: c.BufferBytes, StateBytes: c.StateBytes,
		NackResendSleep: c.NackResendSleep, MaxNackResendSleep: c.MaxNackResendSleep, AckDeadline: c.AckDeadline,
		Failures: c.Failures, CloseTimeout: c.CloseTimeout, Unmarshaler: c.Unmarshaler,
		Timing: Timing{
			PollInterval: c.PollInterval, MaxPollInterval: c.MaxPollInterval, TrailingDelay: c.TrailingDelay,
			ReconcileInterval: -1,
		},
	}
	config.setDefaults()
	return config
}
