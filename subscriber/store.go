package subscriber

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// PositionStore stores the position of a group on each aggregate: the number of the last acked
// event.
//
// An epoch is a number that identifies the term of one owner of a shard. A store refuses a call
// with [ErrFenced] if it has seen a newer epoch, or if the position is not the one that the caller
// expects. A caller that is refused has lost the shard.
//
// The subscriber claims the position of each aggregate once in a term, before the first message,
// and again after an Advance that failed. A handler can make the Advance in a transaction of its
// own, see [Position.CommitIn]. Package projection/sqlprojection has a store for database/sql.
type PositionStore interface {
	// Claim makes epoch the only one that may advance the position, and returns the position. found
	// is false if there is no position yet.
	Claim(ctx context.Context, group GroupKey, id aggregate.ID, epoch uint64) (position uint64, found bool, err error)
	// Advance moves the position from one number to another.
	Advance(ctx context.Context, group GroupKey, id aggregate.ID, epoch, from, to uint64) error
}

// GroupKey identifies the positions of a consumer group. A store keeps positions separately for
// each value of it.
type GroupKey struct {
	// Name is the group's name, as in [Config].ConsumerGroup.
	Name string
	// Resets rises with every reset of the group, and when a removed group is created again. So the
	// group has no positions then, and starts over.
	Resets uint64
}

// guardedPositions returns panics of a store as errors.
type guardedPositions struct{ PositionStore }

func (p guardedPositions) Claim(ctx context.Context, group GroupKey, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	defer recovered(&err, "the PositionStore")
	return p.PositionStore.Claim(ctx, group, id, epoch)
}

func (p guardedPositions) Advance(ctx context.Context, group GroupKey, id aggregate.ID, epoch, from, to uint64) (err error) {
	defer recovered(&err, "the PositionStore")
	return p.PositionStore.Advance(ctx, group, id, epoch, from, to)
}

// PositionRows says which rows of a read model are the positions of a projection.Rows. It is stored
// with the group, so that package groups and the millrace command find the rows.
type PositionRows struct {
	Table        string // the name of the table
	PartitionKey string // an attribute; its value is Prefix and the value of the aggregate's id
	Prefix       string // may be empty
	SortKey      string // an attribute; empty if the table has no sort key
	Sort         string // the value of SortKey
}

// rowsOf returns where the positions of a store are, if they are in rows of a read model. Otherwise
// it returns nil.
func rowsOf(store PositionStore) *checkpoint.Rows {
	if described, ok := store.(interface{ PositionRows() PositionRows }); ok {
		rows := checkpoint.Rows(described.PositionRows())
		return &rows
	}
	return nil
}

// tablePositions stores positions in the checkpoint table of the journal.
type tablePositions struct{ table *checkpoint.Store }

func (p *tablePositions) Claim(ctx context.Context, group GroupKey, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	return p.table.Claim(ctx, checkpoint.Group(group), id, epoch)
}

func (p *tablePositions) Advance(ctx context.Context, group GroupKey, id aggregate.ID, epoch, from, to uint64) error {
	return p.table.Advance(ctx, checkpoint.Group(group), id, epoch, from, to)
}

// advanceItem returns the Advance as a write of a DynamoDB transaction.
func (p *tablePositions) advanceItem(a Advance) types.TransactWriteItem {
	return p.table.AdvanceItem(checkpoint.Group(a.Group), a.Aggregate, a.Epoch, a.From, a.To)
}
