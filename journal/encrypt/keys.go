package encrypt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/internal/units"
	"github.com/millrace-dev/millrace/journal"
)

// KeyStore stores a key of [KeyBytes] for each aggregate. It must be safe for concurrent use.
type KeyStore interface {
	// Key returns the key of an aggregate.
	//
	// Errors: [ErrNoKey], [journal.ErrKeyDestroyed].
	Key(ctx context.Context, id aggregate.ID) ([]byte, error)

	// EnsureKey returns the key of an aggregate, and creates one if the aggregate never had one.
	// All callers in all processes receive the same key. It is called after Key has returned
	// [ErrNoKey], and after a read has shown that no event of the aggregate needs the missing key.
	//
	// Errors: [journal.ErrKeyDestroyed].
	EnsureKey(ctx context.Context, id aggregate.ID) ([]byte, error)

	// Destroy destroys the key, and ensures that the aggregate never gets another one. Destroying a
	// key twice is not an error. After an error the key may or may not be destroyed: call it again.
	Destroy(ctx context.Context, id aggregate.ID) error
}

// KeysConfig configures [Keys].
type KeysConfig struct {
	// Table is the name of the table. Default: "keys".
	Table string
	// Throughput makes [CreateTable] provision the table. Default: nil, which selects on-demand
	// capacity.
	Throughput *types.ProvisionedThroughput
	// Now is the clock that dates keys and tombstones. Default: time.Now.
	Now func() time.Time
}

// The primary key consists of both parts of an aggregate's id, because its text alone is ambiguous.
const (
	attrAggregate = "aid"
	attrType      = "aggregate_type"
	attrKey       = "wrapped_key"
	attrCreated   = "created_at"   // in milliseconds since 1970
	attrDestroyed = "destroyed_at" // in milliseconds since 1970; makes an item a tombstone
)

// Keys is a [KeyStore] in a DynamoDB table. It has one item for each aggregate, with the key that a
// [Wrapper] has wrapped. After the key is destroyed, the item is a tombstone without the key.
// [NewKeys] creates a Keys.
type Keys struct {
	client  journal.Client
	wrapper Wrapper
	config  KeysConfig
}

// CreateTable creates the table of keys if it is missing, and waits until it is active.
//
// Errors: [*ConfigError], [*journal.DescriptorMismatchError] for a table with another primary key,
// [journal.ErrAccess].
func CreateTable(ctx context.Context, client journal.Client, config KeysConfig) error {
	if err := config.prepare(client); err != nil {
		return err
	}
	table, err := TableSchema(config)
	if err != nil {
		return err
	}
	return tables.Create(ctx, client, table)
}

// TableSchema describes the table that [CreateTable] makes. Errors: [*ConfigError].
func TableSchema(config KeysConfig) (journal.TableSchema, error) {
	if err := config.setDefaults(); err != nil {
		return journal.TableSchema{}, err
	}
	table := &dynamodb.CreateTableInput{
		TableName: &config.Table,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrAggregate), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrType), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrAggregate), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrType), KeyType: types.KeyTypeRange},
		},
		BillingMode:           types.BillingModePayPerRequest,
		ProvisionedThroughput: config.Throughput,
	}
	if config.Throughput != nil {
		table.BillingMode = types.BillingModeProvisioned
	}
	return journal.TableSchema{Input: table}, nil
}

// NewKeys returns the keys of a table. It makes no requests. Create the table with [CreateTable],
// or by other means with the primary key ("aid" S, "aggregate_type" S).
//
// Errors: [*ConfigError].
func NewKeys(client journal.Client, wrapper Wrapper, config KeysConfig) (*Keys, error) {
	if err := config.prepare(client); err != nil {
		return nil, err
	}
	if wrapper == nil {
		return nil, &ConfigError{Field: "wrapper", Reason: "is nil: create one with LocalWrapper, or implement one with AWS KMS"}
	}
	return &Keys{client: client, wrapper: wrapper, config: config}, nil
}

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

func (c *KeysConfig) prepare(client journal.Client) error {
	if sdk, ok := client.(*dynamodb.Client); client == nil || ok && sdk == nil {
		return &ConfigError{Field: "client", Reason: "is nil: pass a *dynamodb.Client"}
	}
	return c.setDefaults()
}

func (c *KeysConfig) setDefaults() error {
	if c.Table == "" {
		c.Table = "keys"
	}
	if !tableName.MatchString(c.Table) {
		return &ConfigError{Field: "Table", Reason: fmt.Sprintf("%q is not a name of 3 to 255 letters, digits and _.-", c.Table)}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// Key reads the key of an aggregate, strongly consistent: one round trip, one read unit, and one
// call of the wrapper.
//
// Errors: [ErrNoKey], [journal.ErrKeyDestroyed], [journal.ErrThrottled], [journal.ErrAccess],
// [journal.ErrTableMissing], and the errors of the wrapper.
func (k *Keys) Key(ctx context.Context, id aggregate.ID) ([]byte, error) {
	out, err := units.Send(ctx, &dynamodb.GetItemInput{
		TableName: &k.config.Table, Key: keyOf(id), ConsistentRead: aws.Bool(true),
	}, k.client.GetItem, nil)
	if err != nil {
		return nil, fmt.Errorf("read key of %s: %w", id, k.explain(err))
	}
	if out.Item == nil {
		return nil, fmt.Errorf("%w: %s has none: use the table of keys that it was written with, or restore its row", ErrNoKey, id)
	}
	return k.unwrap(ctx, id, out.Item)
}

// EnsureKey creates a key, and stores it unless there is one. This takes one round trip, one write
// unit, and a call of Wrap. If there is a key, it reads that one like [Keys.Key] in addition.
//
// Errors: the errors of [Keys.Key] except [ErrNoKey].
func (k *Keys) EnsureKey(ctx context.Context, id aggregate.ID) ([]byte, error) {
	key := make([]byte, KeyBytes)
	_, _ = rand.Read(key) // never fails, by its documentation
	wrapped, err := k.wrapper.Wrap(ctx, id, key)
	if err != nil {
		return nil, fmt.Errorf("wrap key of %s: %w", id, err)
	}
	it := keyOf(id)
	it[attrKey] = &types.AttributeValueMemberB{Value: wrapped}
	it[attrCreated] = k.now()
	_, err = units.Send(ctx, &dynamodb.PutItemInput{
		TableName:           &k.config.Table,
		Item:                it,
		ConditionExpression: aws.String("attribute_not_exists(" + attrAggregate + ")"),
	}, k.client.PutItem, nil)
	var exists *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &exists):
		// Another process was faster, or the reply to an earlier attempt of this request was lost.
		return k.Key(ctx, id)
	case err != nil:
		return nil, fmt.Errorf("store key of %s: %w", id, k.explain(err))
	}
	return key, nil
}

// Destroy replaces the key by a tombstone, in one round trip and for one write unit. It also stores
// a tombstone if there is no key yet. Other processes can use the key until their
// [Config.CacheLifetime] has passed.
//
// Errors: [journal.ErrThrottled], [journal.ErrAccess], [journal.ErrTableMissing],
// *aggregate.InvalidIDError.
func (k *Keys) Destroy(ctx context.Context, id aggregate.ID) error {
	if err := id.Validate(); err != nil {
		return err
	}
	_, err := units.Send(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &k.config.Table,
		Key:                       keyOf(id),
		UpdateExpression:          aws.String("SET #d = if_not_exists(#d, :now) REMOVE #k"),
		ExpressionAttributeNames:  map[string]string{"#d": attrDestroyed, "#k": attrKey},
		ExpressionAttributeValues: map[string]types.AttributeValue{":now": k.now()},
	}, k.client.UpdateItem, nil)
	if err != nil {
		return fmt.Errorf("destroy key of %s: %w", id, k.explain(err))
	}
	return nil
}

func (k *Keys) unwrap(ctx context.Context, id aggregate.ID, it map[string]types.AttributeValue) ([]byte, error) {
	if _, destroyed := it[attrDestroyed]; destroyed {
		return nil, fmt.Errorf("key of %s: %w: use another id", id, journal.ErrKeyDestroyed)
	}
	wrapped, ok := it[attrKey].(*types.AttributeValueMemberB)
	if !ok {
		return nil, &journal.CorruptItemError{
			Aggregate: id, Table: k.config.Table, PartitionKey: id.String(), SortKey: id.Type, Reason: "has neither a key nor a tombstone",
		}
	}
	key, err := k.wrapper.Unwrap(ctx, id, wrapped.Value)
	if err != nil {
		return nil, fmt.Errorf("unwrap key of %s: %w", id, err)
	}
	return key, nil
}

func (k *Keys) explain(err error) error {
	return dynamo.ExplainFor(err, k.config.Table, "encrypt.CreateTable")
}

func (k *Keys) now() types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(k.config.Now().UnixMilli(), 10)}
}

func keyOf(id aggregate.ID) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		attrAggregate: &types.AttributeValueMemberS{Value: id.String()},
		attrType:      &types.AttributeValueMemberS{Value: id.Type},
	}
}
