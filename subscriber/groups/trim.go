package groups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// minKeep leaves publishers and members the time to find out about requests whose replies were lost.
const minKeep = time.Minute

// trimAttempts is how often in a row a page of heads is read.
const trimAttempts = 10

// TrimOptions say what [Groups.Trim] removes. Keep is required.
type TrimOptions struct {
	// Keep is how old an event has to be, by the clock of its writer and that of the caller
	// (journal.Config.Now): at least a minute, and longer than publisher.Config.CommitTimeout and
	// than clocks differ.
	Keep time.Duration
	// WithoutGroups also trims a topic that has no consumer group, where nothing says that an event
	// was handled. Without it Trim returns [ErrNoGroups].
	WithoutGroups bool
	// DryRun counts what would be removed, and removes nothing.
	DryRun bool
	// Again also removes what an earlier pass was to remove and did not, since it was interrupted.
	// It costs one read unit or more for each stream of the topic; in the packed layout one for
	// each 4 KB of the items that the stream ever had.
	Again bool
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
	// HeldBy counts by group the streams with old events that stay since the group has not handled
	// them, or has them skipped or deferred.
	HeldBy map[string]int
	// Foreign counts the streams with old events that stay since an event was published to them
	// with their id, or they have a snapshot of a repository.
	Foreign int
}

// Trim shortens a topic that is a queue, in one pass over the topic. It removes the events that
// were published without an aggregate id, are older than TrimOptions.Keep, and were handled by all
// groups of the topic, in each stream from its beginning on. It never removes another event:
// publishers mark theirs when they store them. Events that were stored before publishers did so
// have no mark, and hold up their stream.
//
// Every group counts that there is: a paused or stopped one, one without members, and one that was
// reset keep what they have not handled. So does an aggregate that is blocked or parked. An event
// that is skipped or deferred stays, with all after it in its stream, until its record is gone (see
// [Groups.Skipped]). Positions are read strongly consistent. Readers without a group do not count:
// broadcast subscriptions, and tails. A group that begins later, or that is reset, reads what is
// left.
//
// The stream stays, as the publisher may still write to it, with its version and a row of some 300
// bytes; in the packed layout also an item of some 150 bytes for each commit. An event that a
// publisher writes meanwhile is safe. Passes may run at the same time, in any processes.
//
// Each removed event costs what journal.Journal.Truncate says, and one read unit for each 4 KB, as
// its mark and date are read. Each pass reads the heads, as Lag does, one event of each aggregate
// that has any, and in each page of heads the groups: two units each, and one for each stream with
// old events and one for some 20 records of skipped events. Memory holds a page of heads.
//
// What is throttled is repeated some ten times with backoff. After an error the events that were
// removed stay so, and Trimmed counts them; call it again, with TrimOptions.Again.
//
// Errors: [*TrimKeepError], [ErrNoGroups] and [*ElsewhereError] with nothing removed if they are
// found at the start; [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Trim(ctx context.Context, topic string, options TrimOptions) (Trimmed, error) {
	t := trim{groups: g, topic: topic, options: options, sum: Trimmed{Topic: topic, HeldBy: map[string]int{}}}
	err := t.options.validate()
	if err == nil {
		_, err = t.readers(ctx)
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

// TrimEvery calls [Groups.Trim] after each interval, longer or shorter by up to a tenth, until ctx
// ends, and report, if any, with the result of each pass, to log or count it. After an error the
// next pass has TrimOptions.Again. It returns at once only for options that cannot work. A
// process for each topic is enough; more are safe.
func (g *Groups) TrimEvery(ctx context.Context, topic string, interval time.Duration, options TrimOptions, report func(Trimmed, error)) error {
	if interval <= 0 {
		return fmt.Errorf("trim topic %q: the interval is %s: use a positive one, such as an hour", topic, interval)
	}
	if err := options.validate(); err != nil {
		return fmt.Errorf("trim topic %q: %w", topic, err)
	}
	again := options.Again
	for sleep(ctx, interval-interval/10+rand.N(interval/5+1)) {
		trimmed, err := g.Trim(ctx, topic, options)
		if report != nil && ctx.Err() == nil {
			report(trimmed, err)
		}
		options.Again = again || err != nil
	}
	return nil
}
