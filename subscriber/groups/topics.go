package groups

import (
	"context"
	"fmt"
	"slices"
)

// Topics returns the topics on which there is a group of a name, in their order; none if there is
// none. It costs one read unit for some 40 groups of all names.
//
// Errors: journal.ErrTableMissing, journal.ErrThrottled, journal.ErrAccess, the context's.
func (g *Groups) Topics(ctx context.Context, group string) ([]string, error) {
	keys, err := g.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the topics of group %q: %w", group, err)
	}
	var topics []string
	for _, k := range keys {
		if k.Group == group {
			topics = append(topics, k.Topic)
		}
	}
	slices.Sort(topics)
	return topics, nil
}
