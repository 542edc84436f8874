package groups

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// Group is a handle of one consumer group on one topic. It is safe for concurrent use. The group
// need not exist: then methods return [ErrNoGroup].
type Group struct {
	tables
	key checkpoint.Key
}

// Of returns the handle of a consumer group on a topic of a journal. It makes no requests. For
// several groups, and for single aggregates, use [New].
func Of(j *journal.Journal, group, topic string, options ...Option) *Group {
	return New(j, options...).Of(group, topic)
}

// Of returns the handle of a consumer group on a topic. It makes no requests.
func (g *Groups) Of(group, topic string) *Group {
	return &Group{g.tables, checkpoint.Key{Group: group, Topic: topic}}
}

// Name returns the name of the group (subscriber.Config.ConsumerGroup).
func (g *Group) Name() string { return g.key.Group }

// Topic returns the topic of the group.
func (g *Group) Topic() string { return g.key.Topic }

// Status returns the state of the group. It makes one strongly consistent read.
//
// Errors: [ErrNoGroup] and those of [Groups.List].
func (g *Group) Status(ctx context.Context) (Status, error) {
	now := g.journal.Config.Now()
	membership, err := g.membership(ctx)
	if err != nil {
		return Status{}, g.failed("read", err)
	}
	return statusOf(g.key, membership, now), nil
}

func (g *Group) membership(ctx context.Context) (checkpoint.Membership, error) {
	membership, err := g.store.ReadMembership(ctx, g.key)
	if err == nil && !membership.Exists() {
		err = ErrNoGroup
	}
	return membership, err
}

func shardOf(k checkpoint.Key, r checkpoint.Membership, number int) checkpoint.Shard {
	return checkpoint.Shard{Group: checkpoint.Group{Name: k.Group, Resets: r.Resets}, Topic: k.Topic, Number: number}
}

// failed returns err with the operation that failed and its group.
func (g *Group) failed(what string, err error) error {
	return fmt.Errorf("%s consumer group %q on topic %q: %w", what, g.key.Group, g.key.Topic, err)
}
