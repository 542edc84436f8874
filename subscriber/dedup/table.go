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

// DefaultTable is the name of the table where a config names none.
const DefaultTable = "dedup"

// The attributes of the table.
const (
	attrKey     = "pkey"
	attrMark    = "mark"            // of a key: the call that set it
	attrExpires = "expires_at"      // of a key: epoch milliseconds, as is
	attrTTL     = "ttl"             // of a key: epoch seconds, for DynamoDB
	attrNumber  = "sequence_number" // of a position
)

// Client is what [Keys] and [Positions] need of a *dynamodb.Client.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// TableConfig configures [CreateTable].
type TableConfig struct {
	// Name is that of the table. Default: [DefaultTable].
	Name string
	// Throughput provisions the table. Default: nil, which is on demand.
	Throughput *types.ProvisionedThroughput
}

// CreateTable makes the table where it is missing, waits until it is active, and turns time to live
// on. It may be called again, and by several processes at once. By other means it is a table with
// the partition key "pkey" (S), no sort key, and time to live on "ttl"; its name does not matter.
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

// maxGroupBytes is the most bytes of a group's name: DynamoDB's limit for a key is 2,048, and the
// rest takes up to some 1,100.
const maxGroupBytes = 255

// checkGroup refuses a slash, which ends the name within a key: groups "a" and "a/b" must not meet.
func checkGroup(group string) error {
	var reason string
	switch {
	case group == "":
		reason = "is empty: name the handler, or the group of handlers, that is to get each message once"
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
