package groups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// minKeep is the minimum of TrimOptions.Keep. Publishers and members need this time to resolve
// requests whose replies were lost.
const minKeep = time.Minute

// trimAttempts is the number of attempts in a row to read a page of heads.
const trimAttempts = 10

// TrimOptions configures [Groups.Trim]. Keep is required.
type TrimOptions struct {
	// Keep is the minimum age of removed events. The age is the difference between the clocks of
	// the caller and of the writer (journal.Config.Now). Keep must be longer than
	// publisher.Config.CommitTimeout, and longer than clocks differ. Minimum: a minute.
	Keep time.Duration
	// Groups are names of groups that must exist. Trim returns [ErrNoGroups] if one of them does
	// not exist on the topic. Set it if a program that handles the messages may begin later than
	// other groups. Default: any group is enough.
	Groups []string
	// WithoutGroups also trims a topic that has no consumer group, although nothing shows that an
	// event was handled. Default: Trim returns [ErrNoGroups] for such a topic.
	WithoutGroups bool
	// DryRun counts the events that would be removed, and removes nothing.
	DryRun bool
	// ResumeInterrupted also removes events that an earlier pass has recorded as removed, and has
	// not removed because it was interrupted. It costs a few read units for each stream that was
	// trimmed before.
	ResumeInterrupted bool
	// Corrupt, if set, is called for each head and event that cannot be read. Trim does not remove
	// later events of their streams.
	Corrupt func(*journal.CorruptItemError)
	// Progress, if set, is called after each page of heads with the counts so far.
	Progress func(Trimmed)
}

func (o *TrimOptions) validate() error {
	if o.Keep < minKeep {
		return &TrimKeepError{Keep: o.Keep}
	}
	if o.Corrupt == nil {
		o.Corrupt = func(*journal.CorruptItemError) {}
	}
	if o.Progress == nil {
		o.Progress = func(Trimmed) {}
	}
	return nil
}

// Trimmed is the result of a pass of [Groups.Trim].
type Trimmed struct {
	Topic string // the topic whose messages were removed
	// Aggregates is the number of aggregates of the topic that were read.
	Aggregates int
	// Streams is the number of publishers' streams with old events among them.
	Streams int
	// Events is the number of events that were removed, or would be removed.
	Events uint64
	// Shortened is the number of streams from which events were removed, or would be removed.
	Shortened int
	// HeldBy is the number of streams, for each group, whose old events stay because the group has
	// not handled them, or has skipped or deferred them.
	HeldBy map[string]int
	// Foreign is the number of streams whose old events stay because an event was published with
	// the stream's id, or because a repository has written the last event or a snapshot of the
	// stream.
	Foreign int
	// More reports that a pass of [Groups.TrimDue] has not visited all old messages.
	More bool
}

// Trim shortens a topic that is a queue, in one pass over the topic. It removes events that were
// published without an aggregate id, or to one of publisher.Config.Queues, that are older than
// TrimOptions.Keep, and that all groups of the topic have handled. In each stream it removes them
// from the beginning on. It recognises these events by a mark that publishers store with them, and
// never removes other events. It removes nothing from a stream whose last event does not have the
// mark.
//
// All groups of the topic count, also groups that are paused, stopped, reset or without members.
// Events that a group has not handled stay. Events of blocked and parked aggregates stay. A skipped
// or deferred event stays until its record is deleted (see [Group.Skipped]), together with all
// later events of its stream. Trim reads positions strongly consistently. Readers without a group
// do not count, such as broadcast subscriptions and tails. A group that begins or is reset later
// reads the remaining events.
//
// The stream itself stays, since the publisher may still write to it. It keeps its version and a
// row of about 300 bytes. In the packed layout it also keeps an item of about 150 bytes for each
// commit. Trim does not remove events that are written while it runs. Several passes may run at the
// same time, in any processes.
//
// Each removed event costs the units of journal.Journal.Truncate, and one read unit for each 4 KB
// to read its mark and date. Each shortened stream whose last event stays costs one more, to read
// the mark of that event. Each pass reads the heads, as Lag does, and one event of each
// aggregate with events. For each page of heads and each group it costs two read units, one for
// each stream with old events, and one for about 20 records of skipped events. Memory holds one
// page of heads.
//
// Throttled requests are repeated about ten times with backoff. With an error, the result counts
// the events removed so far. Then call Trim again with TrimOptions.ResumeInterrupted.
//
// Errors: [*TrimKeepError]; [ErrNoGroups] and [*ExternalPositionsError], with nothing removed
// unless groups change while it runs; [ErrCorrupt], and the errors of the journal and the context.
func (g *Groups) Trim(ctx context.Context, topic string, options TrimOptions) (Trimmed, error) {
	t := trim{groups: g, topic: topic, options: options, sum: Trimmed{Topic: topic, HeldBy: map[string]int{}}}
	err := t.options.validate()
	if err == nil {
		_, err = t.consumers(ctx)
	}
	t.until = g.journal.Config.Now().Add(-options.Keep)
	for shard := 0; err == nil && shard < g.journal.Config.Shards; shard++ {
		err = t.shard(ctx, shard)
	}
	if err != nil {
		return t.sum, fmt.Errorf("trim topic %q: %w", topic, err)
	}
	return t.sum, nil
}

// TrimEvery calls [Groups.Trim] after each interval, plus or minus up to a tenth, until ctx ends.
// It calls report, if not nil, with the result of each pass. After an error it sets
// TrimOptions.ResumeInterrupted for the next pass. It returns an error at once if the interval or
// the options are invalid. Otherwise it returns nil when ctx ends. One process for each topic is
// enough, and more are safe.
func (g *Groups) TrimEvery(ctx context.Context, topic string, interval time.Duration, options TrimOptions, report func(Trimmed, error)) error {
	if interval <= 0 {
		return fmt.Errorf("trim topic %q: the interval is %s: use a positive one, such as an hour", topic, interval)
	}
	if err := options.validate(); err != nil {
		return fmt.Errorf("trim topic %q: %w", topic, err)
	}
	resume := options.ResumeInterrupted
	for retry.Sleep(ctx, interval-interval/10+rand.N(interval/5+1)) {
		trimmed, err := g.Trim(ctx, topic, options)
		if report != nil && ctx.Err() == nil {
			report(trimmed, err)
		}
		options.ResumeInterrupted = resume || err != nil
	}
	return nil
}
