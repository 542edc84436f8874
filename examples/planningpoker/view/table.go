package view

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// CreateTable makes the table where it is missing, waits until it is active, and turns time to live on. It may be called
// again, and by several processes at once. Errors: journal.ErrDescriptorMismatch for a table that was made for something
// else, journal.ErrAccess.
func (d *DAO) CreateTable(ctx context.Context) error {
	err := journal.EnsureTable(ctx, d.client, &dynamodb.CreateTableInput{
		TableName:   &d.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrRoomID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrItemKey), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrRoomID), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrItemKey), KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		return err
	}
	return journal.EnsureExpiry(ctx, d.client, d.table, attrExpiresAt)
}
