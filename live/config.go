package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Config configures a [Feed]. Journal, Topics and either Group or Wait are required.
type Config struct {
	// Journal is the journal whose events change the read model.
	Journal *journal.Journal

	// Topics are the aggregate types of these events.
	Topics []string

	// Group is the consumer group that maintains the read model. The feed waits until the group has
	// applied an event before it notifies watchers (groups.Groups.WaitApplied). Its positions must
	// be in the checkpoint table; for others set Wait instead.
	Group string

	// Wait waits until queries show the event of a record, or until ctx ends. It is called again
	// after an error, with a backoff, until WaitTimeout. Use it for a read model in a SQL database,
	// in generations, or with an index that is eventually consistent:
	//
	//	g := groups.New(j, groups.WithPositions(store)) // a sqlprojection.Store
	//	wait := func(ctx context.Context, r *journal.Record) error {
	//		return g.WaitApplied(ctx, "totals", r.Aggregate, r.Number)
	//	}
	//
	// Default: groups.Groups.WaitApplied with Group.
	Wait func(ctx context.Context, r *journal.Record) error

	// WaitTimeout is how long the feed waits for the read model to apply an event. After it, the
	// failure is logged and watchers are notified anyway. It should be longer than a takeover takes
	// after a member of the group has crashed: 1.25 times subscriber.Config.LeaseDuration, which is
	// 10 seconds by default. For the next events of an aggregate that was late the feed
	// waits a twentieth of it, until the read model is in time again. Default: 15 seconds.
	WaitTimeout time.Duration

	// Key returns the key that an event concerns, as watchers name it, or "" for none. It is called
	// after the wait, so it may query the read model. An error is logged, and nobody is notified.
	// An event that concerns more keys can call [Feed.Notify] for the others. Default: the id of
	// the event's aggregate, without its type (Record.Aggregate.Value).
	Key func(ctx context.Context, r *journal.Record) (string, error)

	// Hint returns the same key from the record alone, if that is possible. Events whose key nobody
	// watches then cost no reads. Default: none, or with the default Key the same id.
	Hint func(r *journal.Record) string

	// RefreshInterval is how often [Feed.Serve] repeats its query without a notification. Each
	// repetition also keeps proxies from closing an idle connection, which many do after a minute.
	// Default: 25 seconds.
	RefreshInterval time.Duration

	// WriteTimeout is how long a write to a client may take before Serve ends the stream. It applies
	// to each write, and replaces http.Server.WriteTimeout for the stream. Default: 10 seconds.
	WriteTimeout time.Duration

	// ReconnectDelay is how long clients wait before they reconnect, at least. Each gets a random
	// time between this and twice as much, so that they do not come all at once when a process has
	// stopped. Default: 1 second.
	ReconnectDelay time.Duration

	// Subscriber configures the subscription to each topic, such as its PollInterval, which
	// determines the latency of events of other processes. The feed sets Journal, Broadcast and
	// Start.
	Subscriber subscriber.Config

	// Logger receives failed waits, keys and queries, and the logs of the subscription. Default:
	// none.
	Logger watermill.LoggerAdapter
}

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("live config: %s %s", e.Field, e.Reason) }

func (c *Config) validate() error {
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil; open one with journal.Open"}
	case len(c.Topics) == 0:
		return &ConfigError{"Topics", "is empty; name the aggregate types whose events change the read model"}
	case c.Group == "" && c.Wait == nil:
		return &ConfigError{"Group", "is empty; name the consumer group that maintains the read model, or set Wait"}
	case c.Group != "" && c.Wait != nil:
		return &ConfigError{"Group", fmt.Sprintf("is %q, but Wait is set too; leave one of the two out", c.Group)}
	}
	for i, topic := range c.Topics {
		switch {
		case topic == "":
			return &ConfigError{"Topics", "has an empty topic; leave it out"}
		case slices.Contains(c.Topics[:i], topic):
			return &ConfigError{"Topics", fmt.Sprintf("has %q twice; name each topic once", topic)}
		}
	}
	for field, value := range map[string]time.Duration{
		"WaitTimeout": c.WaitTimeout, "RefreshInterval": c.RefreshInterval,
		"WriteTimeout": c.WriteTimeout, "ReconnectDelay": c.ReconnectDelay,
	} {
		if value < 0 {
			return &ConfigError{field, "is negative; leave it 0 for the default"}
		}
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Wait == nil {
		g, group := groups.New(c.Journal), c.Group
		c.Wait = func(ctx context.Context, r *journal.Record) error {
			return g.WaitApplied(ctx, group, r.Aggregate, r.Number)
		}
	}
	if c.Key == nil {
		c.Key = func(_ context.Context, r *journal.Record) (string, error) { return r.Aggregate.Value, nil }
		if c.Hint == nil {
			c.Hint = func(r *journal.Record) string { return r.Aggregate.Value }
		}
	}
	for field, value := range map[*time.Duration]time.Duration{
		&c.WaitTimeout: 15 * time.Second, &c.RefreshInterval: 25 * time.Second,
		&c.WriteTimeout: 10 * time.Second, &c.ReconnectDelay: time.Second,
	} {
		if *field == 0 {
			*field = value
		}
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
	c.Subscriber.Journal, c.Subscriber.Broadcast, c.Subscriber.Start = c.Journal, true, subscriber.Now()
}
