package groups

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// FenceTime is how long the rows of a group stay after a [Group.Reset] or [Group.Remove], rounded
// up to a full hour. While they exist, no transaction of a handler from before can commit, even if
// its request is delayed. AWS accepts a request for at most 15 minutes. A process that was
// suspended sends a request again when it continues: if that can take longer than FenceTime, end
// such a process before you clear a read model.
const FenceTime = 24 * time.Hour

var _ = [1]struct{}{}[FenceTime-checkpoint.FenceTime] // they are equal

// CleanUp deletes the rows that a group wrote before it was reset or removed, and whose [FenceTime]
// has passed. It returns the time until which the other rows stay, or zero if there are none.
// Without it, the next Reset of the group deletes the rows, or the next Remove of any group if the
// group was removed. CleanUp can be repeated. A row that a suspended process writes after that
// stays forever; nothing reads it.
//
// It costs a read of the membership. If there are rows to delete, it also costs one read unit for
// about 40 rows, at least one for each shard and each earlier reset, and one write of the
// membership. It costs one write unit for each position, which is one for each aggregate, and one
// or two for each record of a skipped event. It deletes the rows of four shards in parallel, 25
// rows at a time in each. It calls progress, if not nil, with the number of rows that each request
// has deleted.
//
// Errors: [ErrNoGroup] if there never was such a group, [ErrCorrupt], and the errors of the journal
// and the context.
func (g *Group) CleanUp(ctx context.Context, progress func(rows int)) (until time.Time, err error) {
	ended, err := g.store.Ended(ctx, g.key)
	if err == nil {
		err = g.cleanUp(ctx, ended, progress)
	}
	if err != nil {
		return time.Time{}, g.failed("clean up after", err)
	}
	if until = ended.Until(); !until.After(g.journal.Config.Now()) {
		until = time.Time{} // all were deleted
	}
	return until, nil
}

// removers is the number of shards whose rows are deleted in parallel. It is small, to leave
// capacity for other requests.
const removers = 4

// cleanUp deletes the rows of ended generations whose time has passed.
func (g *Group) cleanUp(ctx context.Context, ended checkpoint.Ended, progress func(rows int)) error {
	var mu sync.Mutex
	report := func(rows int) {
		mu.Lock()
		defer mu.Unlock()
		if progress != nil {
			progress(rows)
		}
	}
	first, before := ended.Due(g.journal.Config.Now())
	if first == before {
		return nil
	}
	for resets := first; resets < before; resets++ {
		err := inParallel(removers, g.journal.Config.Shards, func(number int) error {
			return g.store.RemoveShard(ctx, shardOf(g.key, checkpoint.Membership{Resets: resets}, number), report)
		})
		if err != nil {
			return err
		}
	}
	return g.store.Forget(ctx, g.key, ended, before)
}

// cleanUpRemoved deletes the rows of removed groups whose time has passed. An error of one group
// does not stop the others.
func (t tables) cleanUpRemoved(ctx context.Context, progress func(rows int)) error {
	removed, err := t.store.Removed(ctx)
	for k, ended := range removed {
		one := &Group{t, k}
		if failure := one.cleanUp(ctx, ended, progress); failure != nil {
			if err = errors.Join(err, one.failed("clean up after", failure)); ctx.Err() != nil {
				break
			}
		}
	}
	return err
}
