package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CreateTable creates the table and its index if they are missing, and waits until they are active.
// It may be called again, and by several processes at once.
func (d *OrderHistoryDao) CreateTable(ctx context.Context) error {
	_, err := d.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &d.config.Table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrOrderID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrConsumerID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrCreationTime), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(attrOrderID), KeyType: types.KeyTypeHash}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(Index),
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String(attrConsumerID), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String(attrCreationTime), KeyType: types.KeyTypeRange},
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return d.explain("create table", err)
	}
	active := dynamodb.NewTableExistsWaiter(d.client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 2*time.Second
	})
	out, err := active.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &d.config.Table}, 5*time.Minute)
	if err != nil {
		return d.explain("wait for table", err)
	}
	if !slices.ContainsFunc(out.Table.GlobalSecondaryIndexes, func(index types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(index.IndexName) == Index
	}) {
		return fmt.Errorf("table %q has no index %q: it has another purpose, use another name", d.config.Table, Index)
	}
	return nil
}
