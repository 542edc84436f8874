package groups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// minKeep leaves publishers and members the time to find out about requests whose replies were
// lost.
const minKeep = time.Minute

// trimAttempts is how often in a row a page of heads is read.
const trimAttempts = 10

// TrimOptions say what [Groups.Trim] removes. Keep is required.
type TrimOptions struct {
	// Keep is the age from which on an event is removed, by the clocks of its writer and of the caller
	// (journal.Config.Now). It is at least a minute, and must be longer than
	// publisher.Config.CommitTimeout and than the clocks differ.
	Keep time.Duration
	// WithoutGroups also trims a topic that has no consumer group, where nothing says that an event
	// was handled. Without it Trim returns [ErrNoGroups].
	WithoutGroups bool
	// DryRun counts what would be removed, and removes nothing.
	DryRun bool
	// ResumeInterrupted also removes what an earlier pass left because it was interrupted. It costs one read unit
	// or more for each stream of the topic, in the packed layout one for each 4 KB of the items that
	// the stream ever had.
	ResumeInterrupted bool
	// Corrupt, if any, receives the heads and events that cannot be read. Their streams are left
	// alone from there on.
	Corrupt func(*journal.CorruptItemError)
	// Progress, if any, is called after each page of heads with what was done so far.
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

// Trimmed is what a pass of [Groups.Trim] has done.
type Trimmed struct {
	Topic string
	// Aggregates of the topic that were looked at, and those of them that have old events and are
	// Streams of publishers.
	Aggregates, Streams int
	// Events were removed, or would be, from so many Shortened streams.
	Events    uint64
	Shortened int
	// HeldBy counts, for each group, the streams with old events that stay because the group has not
	// handled them, or has skipped or deferred them.
	HeldBy map[string]int
	// Foreign counts the streams with old events that stay because an event was published to them
	// with their id, or because they have a snapshot of a repository.
	Foreign int
}

// Trim shortens a topic that is a queue, in one pass over the topic. It removes the events that
// were published without an aggregate id, are older than TrimOptions.Keep, and were handled by all
// groups of the topic, in each stream from its beginning on. It never removes another event:
// publishers mark theirs when they store them. Events that were stored before publishers did so
// have no mark, and hold up their stream.
//
// Every group of the topic counts, also one that is paused, stopped, reset or without members:
// events that it has not handled stay. So do the events of an aggregate that is blocked or parked.
// An event that is skipped or deferred stays, with all later ones of its stream, until its record
// is deleted (see [Groups.Skipped]). Positions are read strongly consistent. Readers without a
// group do not count: broadcast subscriptions, and tails. A group that begins or is reset later
// reads what is left.
//
// The stream itself stays, as the publisher may still write to it: its version and a row of about
// 300 bytes, in the packed layout also an item of about 150 bytes for each commit. Trim does not
// remove events that are written while it runs. Passes may run at the same time, in any processes.
//
// Each removed event costs what journal.Journal.Truncate says, and one read unit for each 4 KB, to
// read its mark and date. Each pass reads the heads, as Lag does, and one event of each aggregate
// that has any. For each page of heads and each group it reads two units, one unit for each stream
// with old events, and one unit for about 20 records of skipped events. Memory holds a page of
// heads.
//
// Throttled requests are repeated about ten times with backoff. After an error the events removed
// so far are counted in Trimmed. Call Trim again with TrimOptions.ResumeInterrupted.
//
// Errors: [*TrimKeepError], [ErrNoGroups] and [*ExternalPositionsError] with nothing removed if they are
// found at the start; [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Trim(ctx context.Context, topic string, options TrimOptions) (Trimmed, error) {
	t := trim{groups: g, topic: topic, options: options, sum: Trimmed{Topic: topic, HeldBy: map[string]int{}}}
	err := t.options.validate()
	if err == nil {
		_, err = t.consumers(ctx)
	}
	t.until = g.journal.Config().Now().Add(-options.Keep)
	for shard := 0; err == nil && shard < g.journal.Shards(); shard++ {
		err = t.shard(ctx, shard)
	}
	if err != nil {
		return t.sum, fmt.Errorf("trim topic %q: %w", topic, err)
	}
	return t.sum, nil
}

// TrimEvery calls [Groups.Trim] after each interval, plus or minus up to a tenth, until ctx ends.
// It calls report, if not nil, with the result of each pass. After an error the next pass has
// TrimOptions.ResumeInterrupted. It returns an error only for options that cannot work, at once; otherwise it
// returns nil when ctx ends. Run it in one process for each topic; more are safe.
func (g *Groups) TrimEvery(ctx context.Context, topic string, interval time.Duration, options TrimOptions, report func(Trimmed, error)) error {
	if interval <= 0 {
		return fmt.Errorf("trim topic %q: the interval is %s: use a positive one, such as an hour", topic, interval)
	}
	if err := options.validate(); err != nil {
		return fmt.Errorf("trim topic %q: %w", topic, err)
	}
	resume := options.ResumeInterrupted
	for sleep(ctx, interval-interval/10+rand.N(interval/5+1)) {
		trimmed, err := g.Trim(ctx, topic, options)
		if report != nil && ctx.Err() == nil {
			report(trimmed, err)
		}
		options.ResumeInterrupted = resume || err != nil
	}
	return nil
}
