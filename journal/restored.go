package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
)

// MarkRestored records that the tables of a journal were restored from a backup. Call it after a
// restore, before the first process opens the journal.
//
// If the snapshot table now has another name, set it in config.Tables.Snapshot. Otherwise the
// journal keeps its snapshot table. A journal and its copy must not share a snapshot table: a
// writer to one journal would damage the other.
//
// A process that opened the journal before the restore may know versions of aggregates that do not
// exist any more. In the layout [Packed] its commits would leave gaps. Within a minute of the mark,
// each such process refuses commits with [ErrRestored] until it opens the journal again. A process
// that cannot read the descriptor does not notice the mark. So stop all writers before a restore,
// and start them after the mark.
//
// It makes one or two reads and one write.
//
// Errors: [*ConfigError], [*DescriptorMismatchError], [*CorruptItemError], [ErrThrottled],
// [ErrUnavailable], [ErrTableMissing], [ErrNoDescriptor], [ErrAccess], and the error of ctx.
func MarkRestored(ctx context.Context, client Client, config Config) error {
	e, err := connect(client, config)
	if err == nil {
		_, err = e.FindDescriptor(ctx)
	}
	if err != nil {
		return fmt.Errorf("mark the journal as restored: %w", err)
	}
	name := e.Config.Tables.Journal
	update := &dynamodb.UpdateItemInput{
		TableName: &name, Key: e.Layout.DescriptorKey(),
		UpdateExpression:          aws.String("SET #r = :r"),
		ConditionExpression:       aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames:  table.AttributeNames("#r", engine.AttrRestored, "#pk", e.Config.Attributes.PartitionKey),
		ExpressionAttributeValues: table.Item{":r": table.StringValue(e.Config.NewID())},
	}
	if config.Tables.Snapshot != "" {
		update.UpdateExpression = aws.String("SET #r = :r, #s = :s")
		update.ExpressionAttributeNames["#s"] = engine.AttrSnapshotTable
		update.ExpressionAttributeValues[":s"] = table.StringValue(config.Tables.Snapshot)
	}
	if err := e.UpdateItem(ctx, update); err != nil {
		return fmt.Errorf("mark the journal as restored: %w", dynamo.Explain(err, name))
	}
	return nil
}
