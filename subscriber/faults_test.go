package subscriber_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// countingClient counts the items that queries of each index return.
type countingClient struct {
	journal.Client
	mu    sync.Mutex
	count map[string]int
}

func (c *countingClient) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := c.Client.Query(ctx, in, opts...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	if err == nil {
		c.count[aws.ToString(in.IndexName)] += len(out.Items)
	}
	return out, err
}

func (c *countingClient) items(index string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[index]
}

// laggingClient hides items of the tail index by their sort key.
type laggingClient struct {
	journal.Client
	mu   sync.Mutex
	hide map[string]bool
}

func (c *laggingClient) set(sortKey string, hidden bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hide[sortKey] = hidden
}

func (c *laggingClient) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := c.Client.Query(ctx, in, opts...)
	if err == nil && aws.ToString(in.IndexName) == "journal-tail-index" {
		c.mu.Lock()
		defer c.mu.Unlock()
		out.Items = slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool {
			return c.hide[nameOf(it)]
		})
	}
	return out, err
}

// stubbornClient fails to update one row of the checkpoint table.
type stubbornClient struct {
	journal.Client
	sortKey string
}

func (c *stubbornClient) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if nameOf(in.Key) == c.sortKey {
		return nil, errors.New("this row cannot be written now")
	}
	return c.Client.UpdateItem(ctx, in, opts...)
}

// process is the client of a process that can be killed. After that no request of it reaches
// DynamoDB.
type process struct {
	journal.Client
	mu   sync.Mutex
	dead bool
}

var errDead = errors.New("the process is dead")

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *process) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = false
}

func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

func (p *process) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.Client.GetItem(ctx, in, opts...)
}

func (p *process) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.Client.BatchGetItem(ctx, in, opts...)
}

func (p *process) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.Client.Query(ctx, in, opts...)
}

func (p *process) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.Client.UpdateItem(ctx, in, opts...)
}

func (p *process) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.Client.DeleteItem(ctx, in, opts...)
}

// transact commits a position alone, as a projection does together with its writes.
func transact(ctx context.Context, client journal.Client, advance subscriber.Advance) error {
	_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{advance.Item}})
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && !advance.Done(canceled.CancellationReasons[0].Item) {
		return subscriber.ErrFenced
	}
	return err
}

// corrupt overwrites the payload of an event with a value that is no payload.
func corrupt(t *testing.T, client journal.Client, sortKey string) {
	t.Helper()
	setPayload(t, client, sortKey, &types.AttributeValueMemberN{Value: "1"})
}

func repair(t *testing.T, client journal.Client, sortKey, payload string) {
	t.Helper()
	setPayload(t, client, sortKey, &types.AttributeValueMemberB{Value: []byte(payload)})
}

func setPayload(t *testing.T, client journal.Client, sortKey string, payload types.AttributeValue) {
	t.Helper()
	_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("journal"),
		Key: map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: "account-0"},
			"skey": &types.AttributeValueMemberS{Value: sortKey},
		},
		UpdateExpression:          aws.String("SET payload = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": payload},
	})
	require.NoError(t, err)
}
