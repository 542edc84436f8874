package millrace

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// settling is one call of Settle. It makes passes. A pass reads all events of the topics that may
// not be handled, and waits until all groups have handled them. Then it waits until no process
// manager has anything to do.
//
// If the next pass finds the same events, everything is settled. An event that follows from others
// is committed before they count as handled. So it was there before the next pass began, and that
// pass would have found it.
type settling struct {
	*App
	inBursts bool
	commits  atomic.Uint64          // of this process, since the call
	seed     maphash.Seed           // of the hash of events
	from     map[string][]time.Time // for each topic the time by shard from which on passes read
	watched  []*settlingGroup       // the groups of the current pass
	stuck    []Unsettled            // found in the current pass
	left     []Unsettled            // what the pass waits for
	err      error                  // the last error of a read, nil if the last one has succeeded
}

// settlingGroup is a consumer group of the App on one topic.
type settlingGroup struct {
	name, topic string
	defers      bool
	sub         *subscriber.Subscriber // nil if it runs in another process or not at all
	status      groups.Status          // zero if the group has not joined yet
	stuck       map[aggregate.ID]bool
}

// watch counts the commits of this process, until the returned function is called. A read of the
// tail may miss them.
func (s *settling) watch() (stop func()) {
	s.seed = maphash.MakeSeed()
	return s.journal.Internal().Watch("", func(id aggregate.ID, _ uint64) {
		if s.topics[id.Type] {
			s.commits.Add(1)
		}
	})
}

// run makes passes until two in a row find the same events.
func (s *settling) run(ctx context.Context) error {
	var before uint64 // what the pass before has found
	pauses := retry.Pauses(10*time.Millisecond, 500*time.Millisecond, 0)
	for again := false; ; {
		commits := s.commits.Load()
		found, err := s.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return s.failed(ctx)
		case errors.Is(err, ErrNotRunning), errors.Is(err, journal.ErrAccess), errors.Is(err, journal.ErrTableMissing),
			errors.Is(err, groups.ErrExternalPositions), errors.Is(err, groups.ErrCorrupt):
			return fmt.Errorf("settle: %w", err)
		case err != nil:
			s.err, again = err, false
			if !retry.Sleep(ctx, pauses.NextBackOff()) {
				return s.failed(ctx)
			}
			continue
		case again && found == before && commits == s.commits.Load():
			if len(s.stuck) > 0 {
				s.left = nil
				return s.failed(ctx)
			}
			return nil
		}
		s.err, again, before = nil, true, found
	}
}

// pass waits until everything is handled that it finds. It returns a hash of the events.
func (s *settling) pass(ctx context.Context) (found uint64, err error) {
	s.stuck, s.left = nil, nil
	if s.inBursts {
		if _, err := s.CatchUp(ctx); err != nil {
			return 0, err
		}
	}
	if s.watched, err = s.groupsNow(ctx); err != nil {
		return 0, err
	}
	if err := s.awaitListed(ctx); err != nil {
		return 0, err
	}
	for topic, of := range s.byTopic() {
		some, err := s.awaitTopic(ctx, topic, of)
		if err != nil {
			return 0, err
		}
		found += some
	}
	for _, check := range []func(context.Context) ([]Unsettled, error){s.deferred, s.due, s.atRest} {
		if err := s.await(ctx, check); err != nil {
			return 0, err
		}
	}
	return found, nil
}
