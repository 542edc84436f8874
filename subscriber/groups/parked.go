package groups

import (
	"context"
	"iter"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// SelectParked yields the parked aggregates of a group that a selection selects, by shard and id,
// with the types of the events that failed. So it shows what [Groups.UnparkAll] and
// [Groups.SkipAll] would edit; SkipAll leaves out those whose Next is not the failed event any
// more. Selection.Edited is not called. The sequence ends with the first error.
//
// It reads as it is consumed, as [Groups.Behind] does, and costs one read unit for the group and
// one for some 40 aggregates that the group has listed, at least for each page and each shard that
// it visits. The event of each aggregate whose reason is selected costs one read unit for each
// 4 KB, and each selected aggregate one more for its position.
//
// Errors: those of [Groups.Behind].
func (g *Groups) SelectParked(ctx context.Context, group, topic string, s Selection) iter.Seq2[Behind, error] {
	b := &bulk{groups: g, key: checkpoint.Key{Group: group, Topic: topic}, selection: s, types: true}
	list := list{groups: g, key: b.key, after: s.After, what: "list parked aggregates of"}
	return list.all(ctx, b.describe)
}

// describe returns the parked aggregates among some entries that are selected.
func (b *bulk) describe(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, entries []checkpoint.Behind) ([]Behind, error) {
	selected, err := b.selected(ctx, b.candidates(entries))
	if err != nil {
		return nil, err
	}
	listed := make([]checkpoint.Behind, len(selected))
	for i, s := range selected {
		listed[i] = s.Behind
	}
	all, err := b.groups.behind(ctx, r, shard, listed)
	if err != nil {
		return nil, err
	}
	for i, s := range selected {
		all[i].Parked.EventType = s.eventType
	}
	return all, nil
}
