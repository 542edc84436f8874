package process

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Client is the part of a *dynamodb.Client that a [Manager] uses. Use the account and region of the
// journal, since one transaction writes to the tables of both.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// bounded ends each request after dynamo.ReplyLimit, so that a dead connection does not block the
// work that waits for it.
type bounded struct {
	client  Client
	observe func(sent time.Time, reply middleware.Metadata) // called after each poll
}

func (b bounded) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return dynamo.Within(ctx, in, b.client.GetItem, o)
}

func (b bounded) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return dynamo.Within(ctx, in, b.client.UpdateItem, o)
}

func (b bounded) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return dynamo.Within(ctx, in, b.client.DeleteItem, o)
}

func (b bounded) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	sent := time.Now()
	out, err := dynamo.Within(ctx, in, b.client.Query, o)
	if err == nil {
		b.observe(sent, out.ResultMetadata)
	}
	return out, err
}
