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
	// Table is the table of the timeouts that are set and the commands that are not sent yet.
	// [CreateTable] creates it. Managers of several types can share one. Default: "process".
	Table string

	// Publisher sends the commands. A command is sent at least once, always with the same UUID.
	Publisher message.Publisher

	// GeneratePublishTopic returns the topic of a command. The same function works for a
	// cqrs.CommandBus.
	GeneratePublishTopic cqrs.CommandBusGeneratePublishTopicFn

	// Marshaler converts commands to messages. The same marshaler works for a cqrs.CommandBus.
	// Default: cqrs.JSONMarshaler.
	Marshaler cqrs.CommandEventMarshaler

	// Codec decodes the events of aggregates without a definition. Default: aggregate.JSON.
	Codec aggregate.Codec

	// Definitions are the definitions of the aggregates whose events the process handles. They
	// upcast the events before the process receives them, and their codecs decode these events.
	// Events of other aggregates keep their stored form. Default: none.
	Definitions []aggregate.AnyDefinition

	// Repository configures the repository of the processes. The default of its Snapshots is a
	// snapshot with each step, since the states of processes are small and each step loads one.
	Repository repository.Config

	// Queues is the number of partitions of the table's index over which timeouts and commands are
	// spread. Each takes about 1,000 writes per second. The table stores the highest number of all
	// managers of the type, and all of them use that number within a minute. So the number can be
	// increased at any time, also in a rolling deployment. A lower number has no effect. At most
	// 256. Default: 1.
	Queues int

	// PollInterval is the time between two polls of [Manager.Run] for timeouts and commands that
	// are due. A poll that finds nothing costs half a read unit for each queue. Default: 1 second.
	PollInterval time.Duration

	// RetryAfter is the time that a manager has to handle a due timeout or the commands that it has
	// stored. After it another manager tries again. So each attempt at a timeout or an event, with
	// its requests and the publisher, is cancelled after that time. Default: 30 seconds.
	RetryAfter time.Duration

	// MaxAttempts limits the attempts at a step, the first included, if other inputs of the same
	// process are stored first. The error after the last one is a journal.ErrConflict. Default: 50.
	MaxAttempts int

	// Middleware, if set, wraps each step. In is the event or the timeout that the step handles.
	// Middleware must call next once, with ctx or a context derived from it, and return the error
	// of next. Next returns an [ErrIgnored] if there was nothing to do. For tracing use
	// tracing.StepMiddleware. Default: none.
	Middleware func(ctx context.Context, process aggregate.ID, in Input, next func(context.Context) error) error

	// Logger receives the failures that no call returns: the failures of [Manager.Run], and
	// failures to delete sent commands or to increase the number of queues. Default: none.
	Logger watermill.LoggerAdapter

	// Now returns the current time, for setting and firing timeouts. Default: the clock of the
	// journal (journal.Config.Now). If both are left out, timeouts also wait until DynamoDB's clock
	// has reached their time, so that a wrong clock fires none early.
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
		return &ConfigError{"Publisher", "and GeneratePublishTopic go together: set both, or neither if no commands are sent"}
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
