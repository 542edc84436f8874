package dedup

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/journal"
)

// DefaultTable is the name of the table if the config leaves it out.
const DefaultTable = "dedup"

// The attributes of the table.
const (
	attrKey     = "pkey"
	attrMark    = "mark"            // key: the call that marked it
	attrExpires = "expires_at"      // key: end of the window, epoch milliseconds
	attrTTL     = "ttl"             // key: time to live of DynamoDB, epoch seconds
	attrNumber  = "sequence_number" // position: the last event that was handled
)

// Client has the methods of *dynamodb.Client that [Keys] and [Positions] use.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// TableConfig configures [CreateTable].
type TableConfig struct {
	// Name is the name of the table. Default: [DefaultTable].
	Name string
	// Throughput is the provisioned capacity of the table. Default: nil, which is on-demand
	// capacity.
	Throughput *types.ProvisionedThroughput
}

// CreateTable creates the table if it is missing, waits until it is active, and enables time to
// live. It can be called again, and by several processes at once. To create the table by other
// means, use the partition key "pkey" of type S, no sort key, and time to live on "ttl".
//
// Errors: [*ConfigError], [*journal.DescriptorMismatchError] for a table with other keys,
// [journal.ErrAccess].
func CreateTable(ctx context.Context, client journal.Client, config TableConfig) error {
	if sdk, ok := client.(*dynamodb.Client); client == nil || ok && sdk == nil {
		return errNoClient
	}
	table, err := TableSchema(config)
	if err != nil {
		return err
	}
	return tables.Create(ctx, client, table)
}

// TableSchema describes the table that [CreateTable] makes. Errors: [*ConfigError].
func TableSchema(config TableConfig) (journal.TableSchema, error) {
	if err := setTable(&config.Name, "Name"); err != nil {
		return journal.TableSchema{}, err
	}
	table := &dynamodb.CreateTableInput{
		TableName:             &config.Name,
		AttributeDefinitions:  []types.AttributeDefinition{{AttributeName: aws.String(attrKey), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:             []types.KeySchemaElement{{AttributeName: aws.String(attrKey), KeyType: types.KeyTypeHash}},
		BillingMode:           types.BillingModePayPerRequest,
		ProvisionedThroughput: config.Throughput,
	}
	if config.Throughput != nil {
		table.BillingMode = types.BillingModeProvisioned
	}
	return journal.TableSchema{Input: table, TimeToLive: attrTTL}, nil
}

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

func setTable(name *string, field string) error {
	if *name == "" {
		*name = DefaultTable
	}
	if !tableName.MatchString(*name) {
		return &ConfigError{Field: field, Reason: fmt.Sprintf("%q is not a name of 3 to 255 letters, digits and _.-", *name)}
	}
	return nil
}

// maxGroupBytes is the maximum length of a group name. DynamoDB allows 2,048 bytes for a key, and
// the rest of the key needs up to about 1,100.
const maxGroupBytes = 255

// checkGroup refuses a slash, since a slash ends the group name in a key. Otherwise keys of groups
// "a" and "a/b" could be equal.
func checkGroup(group string) error {
	var reason string
	switch {
	case group == "":
		reason = "is empty: name the handler, or the group of handlers, that handles each message once"
	case len(group) > maxGroupBytes:
		reason = fmt.Sprintf("has %d bytes: use at most %d", len(group), maxGroupBytes)
	case !utf8.ValidString(group) || strings.Contains(group, "/"):
		reason = fmt.Sprintf("%q is not plain text without a slash", group)
	default:
		return nil
	}
	return &ConfigError{Field: "Group", Reason: reason}
}

func checkClient(client Client) error {
	if sdk, ok := client.(*dynamodb.Client); client == nil || ok && sdk == nil {
		return errNoClient
	}
	return nil
}

func itemKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrKey: &types.AttributeValueMemberS{Value: key}}
}

// explain is [tables.Explain] for a table of this package.
func explain(err error, table string) error {
	return tables.Explain(err, table, "dedup.CreateTable")
}
