package faults

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/journal"
)

// Operation is a call of DynamoDB's API, by its name.
type Operation string

// The operations of a [journal.Client].
const (
	GetItem            Operation = "GetItem"
	PutItem            Operation = "PutItem"
	UpdateItem         Operation = "UpdateItem"
	DeleteItem         Operation = "DeleteItem"
	BatchGetItem       Operation = "BatchGetItem"
	BatchWriteItem     Operation = "BatchWriteItem"
	Query              Operation = "Query"
	Scan               Operation = "Scan"
	TransactGetItems   Operation = "TransactGetItems"
	TransactWriteItems Operation = "TransactWriteItems"
	CreateTable        Operation = "CreateTable"
	DescribeTable      Operation = "DescribeTable"
)

// Client is a [journal.Client] that counts its calls and can be given faults. It is safe for concurrent use.
type Client struct {
	journal.Client // for what is not counted

	mu     sync.Mutex
	calls  map[Operation]int
	faults map[Operation][]*Fault // by address, so that one can be taken out
}

var _ journal.Client = (*Client)(nil)

// New gives a client that passes everything on to another.
func New(client journal.Client) *Client {
	return &Client{Client: client, calls: map[Operation]int{}, faults: map[Operation][]*Fault{}}
}

// Inject puts a fault before all calls of an operation and before the faults that were injected earlier, until remove
// is called.
func (c *Client) Inject(op Operation, fault Fault) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[op] = append(c.faults[op], &fault)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults[op] = slices.DeleteFunc(c.faults[op], func(f *Fault) bool { return f == &fault })
	}
}

// Calls tells how often each operation was called since New or Reset. Calls that a fault kept from DynamoDB count too.
func (c *Client) Calls() map[Operation]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// Reset starts the counts again.
func (c *Client) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.calls)
}

func (c *Client) enter(op Operation) []*Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[op]++
	return slices.Clone(c.faults[op])
}

type options = []func(*dynamodb.Options)

func do[In, Out any](
	ctx context.Context, c *Client, op Operation, in *In, opts options,
	method func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
) (*Out, error) {
	send := func(ctx context.Context) (any, error) {
		out, err := method(ctx, in, opts...)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	for _, fault := range c.enter(op) {
		next := send
		send = func(ctx context.Context) (any, error) {
			return (*fault)(ctx, Call{Operation: op, Input: in, Send: next})
		}
	}
	out, err := send(ctx)
	typed, _ := out.(*Out)
	return typed, err
}

// GetItem counts the call and lets faults stand in for it.
func (c *Client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return do(ctx, c, GetItem, in, opts, c.Client.GetItem)
}

// PutItem counts the call and lets faults stand in for it.
func (c *Client) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return do(ctx, c, PutItem, in, opts, c.Client.PutItem)
}

// UpdateItem counts the call and lets faults stand in for it.
func (c *Client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return do(ctx, c, UpdateItem, in, opts, c.Client.UpdateItem)
}

// DeleteItem counts the call and lets faults stand in for it.
func (c *Client) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return do(ctx, c, DeleteItem, in, opts, c.Client.DeleteItem)
}

// BatchGetItem counts the call and lets faults stand in for it.
func (c *Client) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return do(ctx, c, BatchGetItem, in, opts, c.Client.BatchGetItem)
}

// BatchWriteItem counts the call and lets faults stand in for it.
func (c *Client) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return do(ctx, c, BatchWriteItem, in, opts, c.Client.BatchWriteItem)
}

// Query counts the call and lets faults stand in for it.
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return do(ctx, c, Query, in, opts, c.Client.Query)
}

// Scan counts the call and lets faults stand in for it.
func (c *Client) Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return do(ctx, c, Scan, in, opts, c.Client.Scan)
}

// TransactGetItems counts the call and lets faults stand in for it.
func (c *Client) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return do(ctx, c, TransactGetItems, in, opts, c.Client.TransactGetItems)
}

// TransactWriteItems counts the call and lets faults stand in for it.
func (c *Client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return do(ctx, c, TransactWriteItems, in, opts, c.Client.TransactWriteItems)
}

// CreateTable counts the call and lets faults stand in for it.
func (c *Client) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return do(ctx, c, CreateTable, in, opts, c.Client.CreateTable)
}

// DescribeTable counts the call and lets faults stand in for it.
func (c *Client) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return do(ctx, c, DescribeTable, in, opts, c.Client.DescribeTable)
}
