package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/units"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// bounded is a client whose reads end after dynamo.ReplyLimit. It counts the capacity units of
// requests for journal.CountUnits. Writes have time limits of their own.
type bounded struct{ journaltype.Client }

func (b bounded) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return dynamo.Within(ctx, in, b.Client.GetItem, sharing(ctx, o))
}

func (b bounded) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	return dynamo.Within(ctx, in, b.Client.BatchGetItem, sharing(ctx, o))
}

func (b bounded) TransactGetItems(
	ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactGetItemsOutput, error) {
	return dynamo.Within(ctx, in, b.Client.TransactGetItems, sharing(ctx, o))
}

func (b bounded) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return dynamo.Within(ctx, in, b.Client.Query, sharing(ctx, o))
}

func (b bounded) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return dynamo.Within(ctx, in, b.Client.Scan, sharing(ctx, o))
}

func (b bounded) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return units.Send(ctx, in, b.Client.PutItem, sharing(ctx, o))
}

func (b bounded) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return units.Send(ctx, in, b.Client.UpdateItem, sharing(ctx, o))
}

func (b bounded) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return units.Send(ctx, in, b.Client.DeleteItem, sharing(ctx, o))
}

func (b bounded) BatchWriteItem(
	ctx context.Context, in *dynamodb.BatchWriteItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.BatchWriteItemOutput, error) {
	return units.Send(ctx, in, b.Client.BatchWriteItem, sharing(ctx, o))
}

func (b bounded) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return units.Send(ctx, in, b.Client.TransactWriteItems, sharing(ctx, o))
}

// Bounded returns a client whose reads end after dynamo.ReplyLimit.
func Bounded(client journaltype.Client) journaltype.Client { return bounded{client} }
