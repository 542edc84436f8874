package groups

import (
	"context"
	"fmt"
	"slices"
)

// Topics gives the topics on which there is a group of a name, in their order; none if there is none. It costs one read unit for some 40 groups of all names, and a round trip
// for each topic.
//
// Errors: those of List.
func (g *Groups) Topics(ctx context.Context, group string) ([]string, error) {
	keys, err := g.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the topics of group %q: %w", group, err)
	}
	var topics []string
	for _, k := range keys {
		if k.Group != group {
			continue
		}
		roster, err := g.store.ReadRoster(ctx, k)
		if err != nil {
			return nil, failed("read", k, err)
		}
		if roster.Exists() { // it may have been removed meanwhile
			topics = append(topics, k.Topic)
		}
	}
	slices.Sort(topics)
	return topics, nil
}
