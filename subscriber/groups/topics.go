package groups

import (
	"context"
	"fmt"
	"slices"
)

// Topics returns the topics on which there is a group with this name, in order. It returns none if
// there is no such group. It costs one read unit for about 40 groups of any name.
//
// Errors: journal.ErrTableMissing, journal.ErrThrottled, journal.ErrAccess, and the error of the
// context.
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
