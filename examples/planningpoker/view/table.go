package view

import (
	"context"

	"github.com/millrace-dev/millrace/projection"
)

// CreateTable creates the table if it is missing, waits until it is active, and enables its time to
// live. It may be called again, and by several processes at once. Errors:
// *journal.DescriptorMismatchError for a table with another purpose, journal.ErrAccess.
func (d *DAO) CreateTable(ctx context.Context) error {
	return projection.CreateTable(ctx, d.client, projection.Table{
		Name: d.table, PartitionKey: attrRoomID, SortKey: attrItemKey, TimeToLive: attrExpiresAt,
	})
}
