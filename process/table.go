package process

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/journal"
)

// DefaultTable is the default of [Config].Table.
const DefaultTable = "process"

// The table has a row for each timeout that is set and for each step whose commands are not sent
// yet. Its index orders them by the time at which a manager handles them: when a timeout is due, or
// when commands should have been sent. One more row for each type of process holds the number of
// queues. It is not in the index.
const (
	pkey, skey     = "pkey", "skey" // pkey is the process, skey identifies the row
	queueAttribute = "queue"
	dueAttribute   = "due" // ms since 1970
	tokenAttribute = "token"
	// When the timeout fires, or the commands were stored. During an attempt, due is later.
	atAttribute      = "at"
	commandAttribute = "commands"
	dueIndex         = "process-due"

	// Number of attempts so far, for Backlog.Pending.
	attemptsAttribute = "attempts"
	failureAttribute  = "failure"

	timeoutPrefix, commandsPrefix = "timeout/", "commands/"
)

// CreateTable creates the table if it is missing and waits until it is active. It compares the keys
// of an existing table. Name is [Config].Table. Errors: [*journal.DescriptorMismatchError] if the
// table exists with other keys, [journal.ErrTableMissing] for a missing index, [journal.ErrAccess].
func CreateTable(ctx context.Context, client journal.Client, name string) error {
	return tables.Create(ctx, client, TableSchema(name))
}

// TableSchema describes the table that [CreateTable] makes.
func TableSchema(name string) journal.TableSchema {
	if name == "" {
		name = DefaultTable
	}
	text := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	return journal.TableSchema{Input: &dynamodb.CreateTableInput{
		TableName: aws.String(name),
		AttributeDefinitions: []types.AttributeDefinition{
			text(pkey), text(skey), text(queueAttribute), {AttributeName: aws.String(dueAttribute), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(pkey), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(skey), KeyType: types.KeyTypeRange},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(dueIndex),
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String(queueAttribute), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(dueAttribute), KeyType: types.KeyTypeRange},
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		BillingMode: types.BillingModePayPerRequest,
	}}
}

// explain calls [tables.Explain] for a table of this package.
func explain(err error, table string) error {
	return tables.Explain(err, table, "process.CreateTable")
}

type item = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// never is the latest time that can be stored. It replaces later ones.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func timeValue(t time.Time) types.AttributeValue {
	if t.After(never) {
		t = never
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.UnixMilli(), 10)}
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func timeOf(v types.AttributeValue) time.Time {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// separator cannot be part of a type or an id, so processes of two types never have the same key.
const separator = "\t"

func rowKey(id aggregate.ID, sort string) item {
	return item{pkey: textValue(id.Type + separator + id.Value), skey: textValue(sort)}
}

// idOf returns the process of a row.
func (m *Manager[S]) idOf(row item) aggregate.ID {
	return aggregate.ID{Type: m.definition.Type(), Value: strings.TrimPrefix(text(row[pkey]), m.definition.Type()+separator)}
}
