package repository

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// Stats counts the work of a repository since it was made. A commit of a [Transaction] counts for
// the repository of each participant that has events.
type Stats struct {
	// Decisions counts the runs of decisions by Execute. A call with conflicts has several runs.
	Decisions uint64
	Refused   uint64 // decisions that returned an error

	Commits uint64 // commits that were written
	Events  uint64 // events in those commits
	// Conflicts counts commits that were not written, because another writer was faster.
	Conflicts uint64
	// Repeated counts commits that were not written, because their command was executed before.
	Repeated uint64
	// Unknown counts commits whose outcome was unknown, also if it became known later.
	Unknown uint64
	// Failed counts commits that were not written for another reason.
	Failed uint64
	// CommitTime is the total time of all commits that the counts above include, with the
	// repetitions of their requests, and without loads and decisions.
	CommitTime time.Duration

	Snapshots        uint64 // stored with a commit or after it
	SnapshotsLeftOut uint64 // not stored; the Logger has the reasons

	Loads uint64 // reads of the current state of an aggregate
	// CacheHits counts decisions and loads that started from a state in the cache.
	CacheHits uint64
	// CacheMisses counts decisions and loads that found no state in the cache. It is 0 without a
	// Config.Cache.
	CacheMisses uint64
}

// Stats returns the current counts. It makes no request.
func (r *Repository[S]) Stats() Stats {
	c := &r.counters
	return Stats{
		Decisions: c.decisions.Load(), Refused: c.refused.Load(),
		Commits: c.commits.Load(), Events: c.events.Load(), Conflicts: c.conflicts.Load(), Repeated: c.repeated.Load(),
		Unknown: c.unknown.Load(), Failed: c.failed.Load(), CommitTime: time.Duration(c.commitTime.Load()),
		Snapshots: c.snapshots.Load(), SnapshotsLeftOut: c.snapshotsLeftOut.Load(),
		Loads: c.loads.Load(), CacheHits: c.cacheHits.Load(), CacheMisses: c.cacheMisses.Load(),
	}
}

type counters struct {
	decisions, refused                   atomic.Uint64
	commits, events                      atomic.Uint64
	conflicts, repeated, unknown, failed atomic.Uint64
	commitTime                           atomic.Int64
	snapshots, snapshotsLeftOut          atomic.Uint64
	loads, cacheHits, cacheMisses        atomic.Uint64
}

// commit counts the outcome of a commit.
func (c *counters) commit(events int, begun time.Time, err error) {
	c.commitTime.Add(int64(time.Since(begun)))
	switch {
	case err == nil:
		c.commits.Add(1)
		c.events.Add(uint64(events)) //nolint:gosec // not negative
	case errors.Is(err, journal.ErrOutcomeUnknown):
		c.unknown.Add(1)
	case errors.Is(err, journal.ErrConflict):
		c.conflicts.Add(1)
	case errors.As(err, new(*journal.DuplicateCommandError)):
		c.repeated.Add(1)
	default:
		c.failed.Add(1)
	}
}

// snapshot counts the outcome of a commit's snapshot.
func (c *counters) snapshot(leftOut bool) {
	if leftOut {
		c.snapshotsLeftOut.Add(1)
	} else {
		c.snapshots.Add(1)
	}
}
