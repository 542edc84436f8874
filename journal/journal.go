package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Client is the part of *dynamodb.Client that the journal uses.
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

// Journal is an open journal. It is safe for concurrent use.
type Journal struct{ engine *engine }

// engine implements [Journal]. Its other exported methods are for the packages of this module,
// which find them through package eventlog. The engine validates arguments, encodes and decodes
// payloads and notifies watchers. Its layout stores and reads.
type engine struct {
	*store
	given    Client // as the caller passed it to Open
	layout   layout
	watchers *watchers
	raw      bool // see Raw
}

func init() {
	storage.Engine = func(j any) any { return j.(*Journal).engine }
}

// Open returns the journal of tables that [Create] or [Adopt] has prepared. It reads the descriptor
// with one strongly consistent read and compares it with config. If config leaves out the number of
// shards, the layout, the unit of times or the required encodings, Open takes them from the
// descriptor. While DynamoDB throttles, fails or cannot be reached, Open tries again for up to 30
// seconds.
//
// Errors: [*ConfigError], [ErrTableMissing], [ErrNoDescriptor], [*DescriptorMismatchError],
// [*CorruptItemError], [ErrAccess], [ErrThrottled], [ErrUnavailable], and the error of ctx.
func Open(ctx context.Context, client Client, config Config) (*Journal, error) {
	j, err := newEngine(client, config)
	if err != nil {
		return nil, err
	}
	var stored descriptor
	var asOf time.Time
	err = dynamo.Start(ctx, func(ctx context.Context) (err error) {
		asOf = time.Now()
		if config.Layout == "" {
			stored, err = j.findDescriptor(ctx)
		} else {
			stored, err = j.givenDescriptor(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if j.config.Shards == 0 {
		j.config.Shards = stored.Shards
	}
	if config.OccurredAtUnit == 0 {
		j.config.OccurredAtUnit = stored.Unit
	}
	if len(config.RequiredEncodings) == 0 {
		j.config.RequiredEncodings = stored.RequiredEncodings
	}
	if err := j.config.Layout.validate(j.config); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := stored.matches(describe(j.config)); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.layout.opened(stored, asOf)
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
	client = bounded{client}
	if config.Now == nil {
		clock := &clock{}
		config.Now, client = clock.now, timed{client, clock}
	}
	config.setDefaults()
	_, sdk := given.(*dynamodb.Client)
	j := &engine{store: &store{client, config, rows.Source{Client: client, SDK: sdk}}, given: given, watchers: &watchers{}}
	j.use(config.Layout)
	return j, nil
}

// Shards returns the number of logical shards of each aggregate type.
func (j *Journal) Shards() int { return j.engine.config.Shards }

// Client returns the client that was passed to [Open].
func (j *Journal) Client() Client { return j.engine.given }

// Config returns the configuration with all defaults, and with the values that [Open] took from the
// descriptor.
func (j *Journal) Config() Config { return j.engine.config }
