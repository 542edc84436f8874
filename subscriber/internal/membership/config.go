package membership

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Config is what a member needs. Lease and Name are documented in subscriber.Config.
type Config struct {
	Checkpoint *checkpoint.Store
	Key        checkpoint.Key
	Shards     int // of the journal
	Lease      time.Duration
	Name       string
	Now        func() time.Time // the clock that dates events
	Logger     watermill.LoggerAdapter
	// Start returns the time before which a group leaves out events that begins at a time.
	Start func(time.Time) time.Time
	// ShardOf returns the shard of an aggregate by the value of its id.
	ShardOf func(value string) int
	// ExternalPositions reports that the checkpoint table does not have the positions.
	ExternalPositions bool
	// Rows says in which rows of a read model the positions are.
	Rows *checkpoint.Rows
	// NoReplay is documented in subscriber.Config.
	NoReplay bool
	// Accepts returns an error if the subscription cannot be a member of a group.
	Accepts func(checkpoint.Membership) error
	// Closing is the context of writes at the end. It ends in time for Close to return.
	Closing context.Context //nolint:containedctx // it limits the work of many calls
}

// Term is the time in which a member owns a shard.
type Term struct {
	Shard        int
	Owner, Epoch uint64
	// Unclean reports that a visitor has begun the term, and that the owner before has neither left
	// nor stopped: its process may have ended in the middle of the work.
	Unclean    bool
	Membership checkpoint.Membership // when the term began
}

// Work is the work on a shard in one term.
type Work interface {
	Run()           // returns when the work has ended
	Stop()          // ends the work gracefully
	Lose()          // ends the work at once, because another member owns the shard
	IsLost() bool   // reports that another member owns the shard
	IsFenced() bool // after Run: no transaction of the shard's handlers can commit any more
}
