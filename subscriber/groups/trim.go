package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/eventlog"
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

// trim is a pass over a topic.
type trim struct {
	groups  *Groups
	topic   string
	options TrimOptions
	until   time.Time

	mu  sync.Mutex
	sum Trimmed
}

// reader is a group of the topic.
type reader struct {
	key    checkpoint.Key
	roster checkpoint.Roster
}

// readers returns the groups whose positions count, as they are now.
func (t *trim) readers(ctx context.Context) (readers []reader, err error) {
	err = patiently(ctx, func() error {
		readers = nil
		keys, err := t.groups.store.Keys(ctx)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.Topic != t.topic {
				continue
			}
			roster, err := t.groups.store.ReadRoster(ctx, k)
			if err != nil {
				return err
			}
			if roster.Exists() {
				readers = append(readers, reader{k, roster})
			}
		}
		return nil
	})
	if err == nil && len(readers) == 0 && !t.options.WithoutGroups {
		err = ErrNoGroups
	}
	for _, r := range readers {
		if r.roster.Elsewhere && t.groups.elsewhere == nil {
			err = &ElsewhereError{Group: r.key.Group, Topic: t.topic}
		}
	}
	return readers, err
}

// shard trims the streams of a shard. It reads the heads again, from where they failed.
func (t *trim) shard(ctx context.Context, shard int) error {
	q := eventlog.HeadsOfShard{AggregateType: t.topic, Shard: shard}
	between := patience()
	for failures := 0; ; {
		after := q.After
		readErr, err := t.shardFrom(ctx, &q)
		if readErr == nil || err != nil {
			return err
		}
		if q.After != after {
			failures = 0
			between.Reset()
		}
		failures++
		if !passes(readErr) || failures == trimAttempts || !sleep(ctx, between.NextBackOff()) {
			return readErr
		}
	}
}

// shardFrom trims the streams of a shard page by page, and moves the query on. The first error is
// that of reading heads.
func (t *trim) shardFrom(ctx context.Context, q *eventlog.HeadsOfShard) (readErr, err error) {
	for heads, err := range t.groups.journal.Raw().ShardHeads(ctx, *q, t.options.Corrupt) {
		if err != nil {
			return err, nil
		}
		if len(heads) == 0 {
			continue
		}
		if err := t.page(ctx, q.Shard, heads); err != nil {
			return nil, err
		}
		q.After = heads[len(heads)-1].Aggregate
		t.sum.Aggregates += len(heads)
		sum := t.sum
		sum.HeldBy = maps.Clone(sum.HeldBy)
		t.options.Progress(sum)
	}
	return nil, nil
}

// queue is a publisher's own stream with an old event.
type queue struct {
	head    journal.Head
	first   uint64 // the number of its first event
	handled uint64 // the number up to which no group needs it
	heldBy  string // the group that needs the next one
}

func (t *trim) page(ctx context.Context, shard int, heads []journal.Head) error {
	if t.options.Again && !t.options.DryRun {
		if err := t.trimAgain(ctx, heads); err != nil {
			return err
		}
	}
	queues, err := t.queues(ctx, heads)
	if err != nil || len(queues) == 0 {
		return err
	}
	readers, err := t.readers(ctx)
	for i := 0; err == nil && i < len(readers); i++ {
		err = t.hold(ctx, shard, readers[i], queues)
	}
	if err != nil {
		return err
	}
	return inParallel(writers, len(queues), func(i int) error { return t.trim(ctx, queues[i]) })
}

// trimAgain removes what earlier passes have left of what they recorded as removed.
func (t *trim) trimAgain(ctx context.Context, heads []journal.Head) error {
	return inParallel(writers, len(heads), func(i int) error {
		head := heads[i]
		if head.TruncatedBefore <= 1 || !head.DeletedAt.IsZero() {
			return nil
		}
		err := t.remove(ctx, head.Aggregate, head.TruncatedBefore)
		if errors.Is(err, eventlog.ErrHasState) || errors.Is(err, journal.ErrNotCovered) {
			return nil // the truncation was not ours
		}
		return t.unlessLeftAlone(err)
	})
}

// queues returns the streams whose first event is old and marked.
func (t *trim) queues(ctx context.Context, heads []journal.Head) ([]*queue, error) {
	found := make([]*queue, len(heads))
	err := inParallel(readers, len(heads), func(i int) error {
		q := &queue{head: heads[i], first: max(heads[i].TruncatedBefore, 1), handled: heads[i].Version}
		if !q.head.DeletedAt.IsZero() || q.first > q.head.Version {
			return nil
		}
		err := patiently(ctx, func() error {
			for r, err := range t.groups.journal.Raw().Events(ctx, q.head.Aggregate, q.first, q.first) {
				if err != nil {
					return err
				}
				if isMarked(r) && t.isOld(r) {
					found[i] = q
				}
			}
			return nil
		})
		return t.unlessLeftAlone(err)
	})
	return slices.DeleteFunc(found, func(q *queue) bool { return q == nil }), err
}

// isMarked reports whether an event was published without an aggregate id, to this stream.
func isMarked(r *journal.Record) bool {
	return r.Metadata[envelope.OwnStreamKey] == envelope.StreamMark(r.Aggregate)
}

// isOld reports whether an event is older than those that stay. An import is as old as its copy.
func (t *trim) isOld(r *journal.Record) bool {
	return r.OccurredAt.Before(t.until) && r.WrittenAt.Before(t.until)
}

// unlessLeftAlone returns the error unless it concerns one stream alone, which is left to a later
// pass.
func (t *trim) unlessLeftAlone(err error) error {
	var corrupt *journal.CorruptItemError
	switch {
	case errors.As(err, &corrupt):
		t.mu.Lock()
		defer t.mu.Unlock()
		t.options.Corrupt(corrupt)
		return nil
	case errors.As(err, new(*journal.TruncatedError)), errors.As(err, new(*journal.DeletedError)), errors.Is(err, journal.ErrNotFound),
		errors.Is(err, journal.ErrKeyDestroyed), errors.Is(err, journal.ErrConflict):
		return nil // another pass or the publisher was faster, or somebody removes it
	}
	return err
}

// hold keeps of streams what a group still needs. It reads the positions before the records of
// skipped events: an event behind a position was handled, or has a record by then.
func (t *trim) hold(ctx context.Context, shard int, r reader, queues []*queue) error {
	k := shardOf(r.key, r.roster, shard)
	ids := make([]aggregate.ID, len(queues))
	byID := make(map[aggregate.ID]*queue, len(queues))
	for i, q := range queues {
		ids[i], byID[q.head.Aggregate] = q.head.Aggregate, q
	}
	var positions map[aggregate.ID]uint64
	err := patiently(ctx, func() (err error) {
		positions, err = t.groups.positions(ctx, k, r.roster, ids, true)
		return err
	})
	if err != nil {
		return err
	}
	needs := func(q *queue, number uint64) {
		if number <= q.handled {
			q.handled, q.heldBy = number-1, r.key.Group
		}
	}
	err = inParallel(readers, len(queues), func(i int) error {
		q := queues[i]
		position, found := positions[q.head.Aggregate]
		if !found {
			err := patiently(ctx, func() (err error) {
				position, err = t.groups.store.Baseline(ctx, q.head, r.roster.Start)
				return err
			})
			if err != nil {
				return err
			}
		}
		needs(q, position+1)
		return nil
	})
	if err != nil {
		return err
	}
	return patiently(ctx, func() error {
		for e, err := range t.groups.store.Skipped(ctx, k) {
			if err != nil {
				return err
			}
			// A record from before the stream was trimmed, by other means, is of no event any more.
			if q := byID[e.Aggregate]; q != nil && e.Number >= q.first {
				needs(q, e.Number)
			}
		}
		return nil
	})
}

// trim removes the old events of a stream that no group needs.
func (t *trim) trim(ctx context.Context, q *queue) error {
	found, err := t.cut(ctx, q)
	if err == nil && found.before > q.first && !t.options.DryRun {
		err = t.remove(ctx, q.head.Aggregate, found.before)
		if errors.Is(err, eventlog.ErrHasState) || errors.Is(err, journal.ErrNotCovered) {
			found, err = cut{before: q.first, foreign: true}, nil
		}
	}
	if err != nil {
		return t.unlessLeftAlone(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Streams++
	if found.before > q.first {
		t.sum.Shortened++
		t.sum.Events += found.before - q.first
	}
	if found.foreign {
		t.sum.Foreign++
	}
	if found.held {
		t.sum.HeldBy[q.heldBy]++
	}
	return nil
}

// remove removes the events before a number. A publisher that writes all the time may be faster
// again and again.
func (t *trim) remove(ctx context.Context, id aggregate.ID, before uint64) error {
	return patiently(ctx, func() error {
		err := t.groups.journal.Trim(ctx, id, before)
		if errors.Is(err, journal.ErrConflict) {
			err = fmt.Errorf("%w: %w", journal.ErrContended, err)
		}
		return err
	})
}

// cut is where a stream's old events end that no group needs.
type cut struct {
	before  uint64 // the number behind the last one, which ends a commit
	held    bool   // the next one is old, and a group needs it
	foreign bool   // the next one is old, and lacks the mark
}

func (t *trim) cut(ctx context.Context, q *queue) (found cut, err error) {
	found.before = q.first
	if q.handled < q.first {
		found.held = true
		return found, nil
	}
	last := min(q.handled+1, q.head.Version) // one more shows whether the commit ends before it
	commit, next := "", q.first
	err = patiently(ctx, func() error {
		for r, err := range t.groups.journal.Raw().Events(ctx, q.head.Aggregate, next, last) {
			if err != nil {
				return err
			}
			if next > q.first && r.CommitID != commit {
				found.before = r.Number
			}
			found.held = r.Number > q.handled && t.isOld(r)
			if r.Number > q.handled || !t.isOld(r) {
				return nil
			}
			if found.foreign = !isMarked(r); found.foreign {
				return nil
			}
			commit, next = r.CommitID, r.Number+1
		}
		return nil
	})
	if next == q.head.Version+1 {
		found.before = next
	}
	return found, err
}
