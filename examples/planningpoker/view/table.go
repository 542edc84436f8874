package view

import (
	"context"

	"github.com/millrace-dev/millrace/projection"
)

// CreateTable makes the table where it is missing, waits until it is active, and turns time to live
// on. It may be called again, and by several processes at once. Errors:
// *journal.DescriptorMismatchError for a table that was made for something else, journal.ErrAccess.
func (d *DAO) CreateTable(ctx context.Context) error {
	return projection.CreateTable(ctx, d.client, projection.Table{
		Name: d.table, PartitionKey: attrRoomID, SortKey: attrItemKey, TimeToLive: attrExpiresAt,
	})
}
