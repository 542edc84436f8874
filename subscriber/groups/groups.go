package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/journal"
)

// Groups operates the consumer groups of a journal. [Groups.Of] returns the handle of one group on
// one topic. The methods that take an aggregate find the topic in its id. Groups is safe for
// concurrent use.
type Groups struct{ tables }

// tables are what groups are read from.
type tables struct {
	journal  *engine.Engine
	store    *checkpoint.Store
	external Positions // nil without WithPositions
	replays  bool      // WithReplay was passed
}

// New returns the groups of a journal. It makes no requests. A nil option has no effect.
func New(j *journal.Journal, options ...Option) *Groups {
	g := &Groups{tables{journal: j.Internal(), store: checkpoint.New(j)}}
	for _, option := range options {
		if option != nil {
			option(g)
		}
	}
	return g
}

// List returns all groups in the order of names and topics. If some groups cannot be read, it
// returns the others and an error. It costs one read unit for about 40 groups, and one read for
// each group.
//
// Errors: [ErrCorrupt], journal.ErrTableMissing, journal.ErrThrottled, journal.ErrAccess, and the
// error of the context.
func (g *Groups) List(ctx context.Context) ([]Status, error) {
	keys, err := g.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list consumer groups: %w", err)
	}
	var all []Status
	var errs []error
	for _, k := range keys {
		now := g.journal.Config.Now()
		membership, err := g.store.ReadMembership(ctx, k)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("list consumer groups: %w", err))
		case membership.Exists(): // else it was removed meanwhile
			all = append(all, statusOf(k, membership, now))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, errors.Join(errs...)
}
