package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// trim is a pass over a topic.
type trim struct {
	groups  *Groups
	topic   string
	options TrimOptions
	until   time.Time

	mu  sync.Mutex
	sum Trimmed
}

// consumer is a consumer group of the topic.
type consumer struct {
	key        checkpoint.Key
	membership checkpoint.Membership
}

// consumers returns the current groups of the topic.
func (t *trim) consumers(ctx context.Context) (found []consumer, err error) {
	err = patiently(ctx, func() error {
		found = nil
		keys, err := t.groups.store.Keys(ctx)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.Topic != t.topic {
				continue
			}
			membership, err := t.groups.store.ReadMembership(ctx, k)
			if err != nil {
				return err
			}
			if membership.Exists() {
				found = append(found, consumer{k, membership})
			}
		}
		return nil
	})
	if err == nil && len(found) == 0 && !t.options.WithoutGroups {
		err = ErrNoGroups
	}
	for _, name := range t.options.Groups {
		if err == nil && !slices.ContainsFunc(found, func(c consumer) bool { return c.key.Group == name }) {
			err = fmt.Errorf("%w: group %q does not exist", ErrNoGroups, name)
		}
	}
	for _, c := range found {
		if c.membership.ExternalPositions && t.groups.external == nil {
			err = &ExternalPositionsError{Group: c.key.Group, Topic: t.topic}
		}
	}
	return found, err
}

// shard trims the streams of a shard. If a read of heads fails, it continues after the last page.
func (t *trim) shard(ctx context.Context, shard int) error {
	q := storage.HeadsOfShard{AggregateType: t.topic, Shard: shard}
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
		if !passes(readErr) || failures == trimAttempts || !retry.Sleep(ctx, between.NextBackOff()) {
			return readErr
		}
	}
}

// shardFrom trims the streams of a shard page by page, and advances the query. readErr is an error
// of reading heads, and err is any other error.
func (t *trim) shardFrom(ctx context.Context, q *storage.HeadsOfShard) (readErr, err error) {
	for heads, err := range t.groups.journal.Raw().ShardHeads(ctx, *q, t.options.Corrupt) {
		if err != nil {
			return err, nil
		}
		if len(heads) == 0 {
			continue
		}
		if _, err := t.page(ctx, q.Shard, heads); err != nil {
			return nil, err
		}
		q.After = heads[len(heads)-1].Aggregate
		t.sum.Aggregates += len(heads)
		t.report()
	}
	return nil, nil
}

func (t *trim) report() {
	sum := t.sum
	sum.HeldBy = maps.Clone(sum.HeldBy)
	t.options.Progress(sum)
}

// page trims those of some streams of a shard that have old messages, and returns them.
func (t *trim) page(ctx context.Context, shard int, heads []journal.Head) (queues []*queue, err error) {
	if t.options.ResumeInterrupted && !t.options.DryRun {
		if err := t.resumeRemovals(ctx, heads); err != nil {
			return nil, err
		}
	}
	queues, err = t.queues(ctx, heads)
	if err != nil || len(queues) == 0 {
		return nil, err
	}
	consumers, err := t.consumers(ctx)
	for i := 0; err == nil && i < len(consumers); i++ {
		err = t.hold(ctx, shard, consumers[i], queues)
	}
	if err != nil {
		return nil, err
	}
	return queues, inParallel(writers, len(queues), func(i int) error { return t.trim(ctx, queues[i]) })
}

// resumeRemovals removes events that earlier passes have recorded as removed, and have not removed.
func (t *trim) resumeRemovals(ctx context.Context, heads []journal.Head) error {
	return inParallel(writers, len(heads), func(i int) error {
		head := heads[i]
		if head.TruncatedBefore <= 1 || !head.DeletedAt.IsZero() {
			return nil
		}
		err := t.remove(ctx, head.Aggregate, head.TruncatedBefore)
		if errors.Is(err, storage.ErrHasState) || errors.Is(err, journal.ErrNotCovered) {
			return nil // the stream was truncated by other means
		}
		return t.unlessLeftAlone(err)
	})
}
