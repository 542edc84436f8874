package groups

import (
	"context"
	"errors"
	"iter"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// SelectParked returns the parked aggregates of a group that a selection selects, by shard and id,
// with the types of the events that failed. So it shows what [Groups.UnparkAll] and
// [Groups.SkipAll] would edit; SkipAll leaves out those whose Next is not the failed event any
// more. Selection.Edited is not called. The sequence ends with the first error.
//
// It costs one read unit for some 40 aggregates that the group has listed, at least for each shard.
// The event of each aggregate whose reason is selected costs one read unit for each 4 KB, and each
// selected aggregate one more for its position.
//
// Errors: those of [Groups.Behind].
func (g *Groups) SelectParked(ctx context.Context, group, topic string, s Selection) iter.Seq2[Behind, error] {
	b := &bulk{groups: g, key: checkpoint.Key{Group: group, Topic: topic}, selection: s, types: true}
	return func(yield func(Behind, error) bool) {
		roster, err := g.roster(ctx, b.key)
		for number := 0; err == nil && number < g.journal.Shards(); number++ {
			for page, pageErr := range g.store.BehindPages(ctx, shardOf(b.key, roster, number)) {
				var selected []Behind
				if err = pageErr; err == nil {
					selected, err = b.describe(ctx, roster, number, page)
				}
				for _, one := range selected {
					if !yield(one, nil) {
						return
					}
				}
				if err != nil {
					break
				}
			}
		}
		if err != nil {
			yield(Behind{}, failed("list parked aggregates of", b.key, err))
		}
	}
}

// describe returns the parked aggregates of a page that are selected.
func (b *bulk) describe(ctx context.Context, roster checkpoint.Roster, number int, page []checkpoint.Behind) ([]Behind, error) {
	selected, err := b.selected(ctx, b.candidates(page))
	if err != nil {
		return nil, err
	}
	listed := make([]checkpoint.Behind, len(selected))
	for i, s := range selected {
		listed[i] = s.Behind
	}
	positions, err := b.groups.positions(ctx, shardOf(b.key, roster, number), roster, idsOf(listed), true)
	unknown := errors.Is(err, ErrElsewhere)
	if err != nil && !unknown {
		return nil, err
	}
	all := make([]Behind, len(selected))
	for i, s := range selected {
		position, found := positions[s.Aggregate]
		if !found && !unknown {
			if position, err = b.groups.baseline(ctx, s.Aggregate, roster.Start); err != nil {
				return nil, err
			}
		}
		all[i] = behindOf(position, s.Behind)
		all[i].Parked.EventType = s.eventType
	}
	return all, nil
}
