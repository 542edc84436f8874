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
	// after an error, with a backoff, until WaitTimeout. Use it for a read model in an SQL
	// database, in generations, or with an index that is eventually consistent:
	//
	//	g := groups.New(j, groups.WithPositions(store)) // a sqlprojection.Store
	//	wait := func(ctx context.Context, r *journal.Record) error {
	//		return g.WaitApplied(ctx, "totals", r.Aggregate, r.Number)
	//	}
	//
	// Default: groups.Groups.WaitApplied with Group.
	Wait func(ctx context.Context, r *journal.Record) error

	// WaitTimeout limits the time that the feed waits for the read model to apply an event. After
	// that it logs the failure, and notifies watchers anyway. Choose it longer than a takeover
	// after a crash of a member of the group: 1.25 times subscriber.Timing.LeaseDuration, whose
	// default is 10 seconds. After a wait that has failed, the feed waits a twentieth of
	// WaitTimeout for each later event of the aggregate, until a wait succeeds again. Default: 15
	// seconds.
	WaitTimeout time.Duration

	// Key returns the key of the watchers that an event concerns, or "" for none. It is called
	// after the wait, so it may query the read model. An error is logged, and no watcher is
	// notified. If an event concerns several keys, call [Feed.Notify] for the others. Default: it
	// returns the value of the aggregate's id, without the type (Record.Aggregate.Value).
	Key func(ctx context.Context, r *journal.Record) (string, error)

	// Hint, if set, returns the same key as Key from the record alone. Then events without watchers
	// cost no reads. Default: none; with the default Key it returns the same id.
	Hint func(r *journal.Record) string

	// RefreshInterval is the interval at which [Feed.Serve] repeats its query without a
	// notification. Each repetition also keeps the connection in use; many proxies close idle
	// connections after a minute. Default: 25 seconds.
	RefreshInterval time.Duration

	// WriteTimeout limits each write to a client. After it Serve ends the stream. It replaces
	// http.Server.WriteTimeout for the stream. Default: 10 seconds.
	WriteTimeout time.Duration

	// ReconnectDelay is the minimum time that clients wait before they reconnect. Each client gets
	// a random time between this and twice this, so that clients do not reconnect all at once after
	// a process has stopped. Default: 1 second.
	ReconnectDelay time.Duration

	// Subscriber configures the subscription to each topic. Its PollInterval determines the latency
	// of events that other processes write. The feed sets Journal and Start.
	Subscriber subscriber.BroadcastConfig

	// Logger receives the errors of Wait, Key and queries, and the logs of the subscription.
	// Default: none.
	Logger watermill.LoggerAdapter
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
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
	c.Subscriber.Journal, c.Subscriber.Start = c.Journal, subscriber.Now()
}
