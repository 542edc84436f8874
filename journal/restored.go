package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// MarkRestored notes that the tables were restored from a backup. In the layout [Packed], a process
// that has opened the journal before knows versions of aggregates that are no more, and would leave
// gaps behind them. Within a minute each such process refuses commits with [ErrRestored], until it
// opens the journal again. Before that, nothing protects: stop all writers before a restore, mark
// it, and start them again.
//
// It takes one write. Errors: [ErrThrottled], [ErrTableMissing], [ErrNoDescriptor], [ErrAccess],
// the context's.
func (j *Journal) MarkRestored(ctx context.Context) error {
	e := j.engine
	if _, err := e.readDescriptor(ctx); err != nil {
		return fmt.Errorf("mark the journal as restored: %w", err)
	}
	table := e.config.Tables.Journal
	err := e.updateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: e.layout.descriptorKey(),
		UpdateExpression:          aws.String("SET #r = :r"),
		ConditionExpression:       aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames:  attributeNames("#r", attrRestored, "#pk", e.config.Attributes.PartitionKey),
		ExpressionAttributeValues: item{":r": stringValue(e.config.NewID())},
	})
	if err != nil {
		return fmt.Errorf("mark the journal as restored: %w", dynamo.Explain(err, table))
	}
	return nil
}
