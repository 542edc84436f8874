package process

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/repository"
)

// Config configures a [Manager]. Publisher and GeneratePublishTopic are required if reactions send
// commands.
type Config struct {
	// Table keeps the timeouts that are set and the commands that are not sent yet. [CreateTable]
	// makes it. Managers of several types can share one. Default: "process".
	Table string

	// Publisher sends the commands. A command is sent at least once, always with the same UUID.
	Publisher message.Publisher

	// GeneratePublishTopic returns the topic of a command, as that of a cqrs.CommandBus does.
	GeneratePublishTopic cqrs.CommandBusGeneratePublishTopicFn

	// Marshaler makes messages of commands, as that of a cqrs.CommandBus does. Default:
	// cqrs.JSONMarshaler.
	Marshaler cqrs.CommandEventMarshaler

	// Codec decodes the events that come in. Default: aggregate.JSON.
	Codec aggregate.Codec

	// Definitions are those of the aggregates that events come from. They upcast the events before
	// the process gets them, and their codecs decode them. Events of other aggregates come as they
	// are stored. Default: none.
	Definitions []aggregate.AnyDefinition

	// Repository configures the repository of the processes. Its Snapshots are by default taken
	// with each step, as the states of processes are small and each step loads one.
	Repository repository.Config

	// Queues is the number of partitions of the table's index over which timeouts and commands are
	// spread. Each takes about 1,000 writes a second. The table stores the highest number that a
	// manager of the type has had, and all of them use that number within a minute. So it can be
	// raised at any time, in a rolling deployment too, and a lower number has no effect. At most 256.
	// Default: 1.
	Queues int

	// PollInterval is the time between two polls of [Manager.Run] for what is due. A poll that finds
	// nothing costs half a read unit for each queue. Default: 1 second.
	PollInterval time.Duration

	// RetryAfter is how long the manager that found a timeout due, or that stored commands, has to
	// handle them before another manager takes them up. So each attempt at a timeout or an event,
	// with its requests and the publisher, is given up after that time. Default: 30 seconds.
	RetryAfter time.Duration

	// MaxAttempts limits the attempts at a step, the first included, if other inputs of the same
	// process are stored first. The error after the last one is a journal.ErrConflict. Default: 50.
	MaxAttempts int

	// Middleware, if set, wraps each step of an event or a timeout. It must call next once, with ctx or
	// a context derived from it, and return its error. next returns an [ErrPassedOver] if there was
	// nothing to do. For spans use tracing.Steps. Default: none.
	Middleware func(ctx context.Context, process aggregate.ID, in Input, next func(context.Context) error) error

	// Logger receives the failures that are not returned: of [Manager.Run], to delete commands that
	// were sent, and to raise the number of queues. Default: none.
	Logger watermill.LoggerAdapter

	// Now is the clock that timeouts are set and fire by. Default: the journal's
	// (journal.Config.Now).
	Now func() time.Time
}

func (c *Config) setDefaults() {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.Marshaler == nil {
		c.Marshaler = cqrs.JSONMarshaler{}
	}
	if c.Codec == nil {
		c.Codec = aggregate.JSON
	}
	if c.Repository.Snapshots == nil {
		c.Repository.Snapshots = repository.Every(1)
	}
	if c.Queues == 0 {
		c.Queues = 1
	}
	if c.PollInterval == 0 {
		c.PollInterval = time.Second
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = 30 * time.Second
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 50
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
}

func (c *Config) validate() error {
	switch {
	case (c.Publisher == nil) != (c.GeneratePublishTopic == nil):
		return &ConfigError{"Publisher", "and GeneratePublishTopic go together: give both, or none where no commands are sent"}
	case c.Queues < 0:
		return &ConfigError{"Queues", "is negative"}
	case c.Queues > maxQueues:
		return &ConfigError{"Queues", fmt.Sprintf("is over %d", maxQueues)}
	case c.PollInterval < 0:
		return &ConfigError{"PollInterval", "is negative"}
	case c.RetryAfter < 0:
		return &ConfigError{"RetryAfter", "is negative"}
	case c.MaxAttempts < 0:
		return &ConfigError{"MaxAttempts", "is negative"}
	}
	return nil
}
