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

// DefaultTable is the table of a [Config] that names none.
const DefaultTable = "process"

// The table has a row for each timeout that is set and for each step whose commands are not sent
// yet. Its index orders them by the time at which a manager takes them up: when a timeout is due,
// and when commands should have been sent. One more row for each type of process has the number of
// queues, and is not in the index.
const (
	pkey, skey       = "pkey", "skey" // the process, and what the row is
	queueAttribute   = "queue"
	dueAttribute     = "due" // ms since 1970
	tokenAttribute   = "token"
	atAttribute      = "at" // when the timeout fires, or the commands were stored; due is later during an attempt
	commandAttribute = "commands"
	dueIndex         = "process-due"

	// The attempts so far, for Backlog.Pending.
	attemptsAttribute = "attempts"
	failureAttribute  = "failure"

	timeoutPrefix, commandsPrefix = "timeout/", "commands/"
)

// CreateTable makes the table where it is missing and waits until it is active; one that exists is
// compared. Name is that of [Config].Table. Errors: [*journal.DescriptorMismatchError] if the table
// exists with other keys, [journal.ErrTableMissing] for an index that it lacks,
// [journal.ErrAccess].
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

// explain is [tables.Explain] for a table of this package.
func explain(err error, table string) error {
	return tables.Explain(err, table, "process.CreateTable")
}

type item = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// never is the latest time that is stored, in place of later ones.
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

// separator is in no type and no id, so processes of two types never have the same key.
const separator = "\t"

func rowKey(id aggregate.ID, sort string) item {
	return item{pkey: textValue(id.Type + separator + id.Value), skey: textValue(sort)}
}

// idOf is the process of a row.
func (m *Manager[S]) idOf(row item) aggregate.ID {
	return aggregate.ID{Type: m.definition.Type(), Value: strings.TrimPrefix(text(row[pkey]), m.definition.Type()+separator)}
}
