package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Client is the part of a *dynamodb.Client that the store uses.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Journal is an open store. It is safe for concurrent use.
type Journal struct{ engine *engine }

// engine implements [Journal]. Its exported methods beyond those of Journal are for the packages of
// this module, which find them by package eventlog.
type engine struct {
	given    Client // by the caller
	client   Client
	config   Config
	rowNames *rows.Names
	watchers *watchers
	raw      bool // see Raw
}

func init() {
	storage.Engine = func(j any) any { return j.(*Journal).engine }
}

// Open returns the journal of tables that [Create] or [Adopt] has prepared. It compares config with
// the descriptor, with one strongly consistent read, and takes from it the shard count, the layout,
// the unit of times and the required encodings if config leaves them out. While DynamoDB throttles,
// fails or cannot be reached, it tries again for up to 30 seconds.
//
// Errors: [*ConfigError], [ErrTableMissing], [ErrNoDescriptor], [*DescriptorMismatchError],
// [*CorruptItemError], [ErrAccess], [ErrThrottled], [ErrUnavailable], the context's.
func Open(ctx context.Context, client Client, config Config) (*Journal, error) {
	j, err := newEngine(client, config)
	if err != nil {
		return nil, err
	}
	var stored descriptor
	err = dynamo.Start(ctx, func(ctx context.Context) (err error) {
		stored, err = j.readDescriptor(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if j.config.Shards == 0 {
		j.config.Shards = stored.Shards
	}
	if config.Layout == "" && stored.Layout.validate() == nil {
		j.config.Layout = stored.Layout
	}
	if config.OccurredAtUnit == 0 {
		j.config.OccurredAtUnit = stored.Unit
	}
	if len(config.RequiredEncodings) == 0 {
		j.config.RequiredEncodings = stored.RequiredEncodings
	}
	if err := stored.matches(describe(j.config)); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &Journal{j}, nil
}

func newEngine(client Client, config Config) (*engine, error) {
	if sdk, ok := client.(*dynamodb.Client); client == nil || ok && sdk == nil {
		return nil, &ConfigError{Field: "client", Reason: "is nil: pass a *dynamodb.Client"}
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	given := client
	if config.Now == nil {
		clock := &clock{}
		config.Now, client = clock.now, timed{client, clock}
	}
	config.setDefaults()
	return &engine{given: given, client: client, config: config, rowNames: config.rowNames(), watchers: &watchers{}}, nil
}

// Shards returns the number of logical shards of each aggregate type.
func (j *Journal) Shards() int { return j.engine.config.Shards }

// Client returns the client with which the journal was opened.
func (j *Journal) Client() Client { return j.engine.given }

// Config returns the configuration, with defaults and what Open took from the descriptor.
func (j *Journal) Config() Config { return j.engine.config }

func (j *engine) getItem(ctx context.Context, table string, key item) (item, error) {
	out, err := j.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &table,
		Key:            key,
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, dynamo.Explain(err, table)
	}
	return out.Item, nil
}
