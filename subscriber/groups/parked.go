package groups

import (
	"context"
	"iter"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// SelectParked yields the selected parked aggregates of a group, in the order of shard and id, with
// the types of their failed events. These are the aggregates that [Group.UnparkAll] and
// [Group.SkipAll] would edit; but SkipAll does not edit an aggregate if Next is not its failed
// event any more. SelectParked does not call Selection.Edited. The sequence ends with the first
// error.
//
// It reads as the sequence is consumed, like [Group.Behind]. It costs one read unit for the group,
// and one for about 40 entries, at least one for each page and each shard. The event of each
// aggregate whose reason is selected costs one read unit for each 4 KB. Each selected aggregate
// costs one more for its position.
//
// Errors: [ErrNoGroup], [ErrCorrupt], and the errors of the journal and the context.
func (g *Group) SelectParked(ctx context.Context, s Selection) iter.Seq2[BehindAggregate, error] {
	b := &bulk{group: g, selection: s, types: true}
	list := list{group: g, what: "list parked aggregates of"}
	return list.all(ctx, b.describe)
}

// describe returns the selected parked aggregates among some entries.
func (b *bulk) describe(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, entries []checkpoint.Behind) ([]BehindAggregate, error) {
	selected, err := b.selected(ctx, b.candidates(entries))
	if err != nil {
		return nil, err
	}
	listed := make([]checkpoint.Behind, len(selected))
	for i, s := range selected {
		listed[i] = s.Behind
	}
	all, err := b.group.behind(ctx, r, shard, listed)
	if err != nil {
		return nil, err
	}
	for i, s := range selected {
		all[i].Parked.EventType = s.eventType
	}
	return all, nil
}
