package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// EnsureTable makes a table where it is missing, waits until it is active, and compares the keys of one that is
// there, as [Create] does with the tables of the journal. It is for packages that keep tables of their own beside them.
//
// Errors: [ErrDescriptorMismatch], [ErrTableMissing] for an index that an existing table lacks, [ErrAccess].
func EnsureTable(ctx context.Context, client Client, table *dynamodb.CreateTableInput) error {
	j := &Journal{client: client}
	if err := j.ensureTable(ctx, table, true); err != nil {
		return fmt.Errorf("create table %q: %w", *table.TableName, err)
	}
	return nil
}
