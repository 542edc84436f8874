package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// MarkRestored notes that the tables of a journal were restored from a backup. Call it after a
// restore and before the first process opens the journal.
//
// If the snapshot table has another name since, config.Tables.Snapshot names it; otherwise the
// journal stays with the one that it has. A journal and its copy must not share a snapshot table:
// who writes to one would damage the other.
//
// In the layout [Packed], a process that has opened the journal before the restore knows versions
// of aggregates that are no more, and would leave gaps behind them. Within a minute of the mark,
// each such process refuses commits with [ErrRestored], until it opens the journal again. One that
// cannot read the descriptor does not notice. So stop all writers before a restore, and start them
// after the mark.
//
// It takes one or two reads and one write. Errors: [*ConfigError], [*DescriptorMismatchError],
// [*CorruptItemError], [ErrThrottled], [ErrUnavailable], [ErrTableMissing], [ErrNoDescriptor],
// [ErrAccess], the context's.
func MarkRestored(ctx context.Context, client Client, config Config) error {
	e, err := newEngine(client, config)
	if err == nil {
		_, err = e.findDescriptor(ctx)
	}
	if err != nil {
		return fmt.Errorf("mark the journal as restored: %w", err)
	}
	table := e.config.Tables.Journal
	update := &dynamodb.UpdateItemInput{
		TableName: &table, Key: e.layout.descriptorKey(),
		UpdateExpression:          aws.String("SET #r = :r"),
		ConditionExpression:       aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames:  attributeNames("#r", attrRestored, "#pk", e.config.Attributes.PartitionKey),
		ExpressionAttributeValues: item{":r": stringValue(e.config.NewID())},
	}
	if config.Tables.Snapshot != "" {
		update.UpdateExpression = aws.String("SET #r = :r, #s = :s")
		update.ExpressionAttributeNames["#s"] = attrSnapshotTable
		update.ExpressionAttributeValues[":s"] = stringValue(config.Tables.Snapshot)
	}
	if err := e.updateItem(ctx, update); err != nil {
		return fmt.Errorf("mark the journal as restored: %w", dynamo.Explain(err, table))
	}
	return nil
}
