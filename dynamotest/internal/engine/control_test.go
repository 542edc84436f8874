package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

// refusal is a request that DynamoDB refuses. If it names no table, it is for the table of the
// case.
type refusal struct {
	name    string
	before  []any // requests that succeed
	request any
	code    string
	text    string // DynamoDB's message
	local   string // DynamoDB Local's message if it differs
	differs string // why DynamoDB Local is not asked
}

// Sources of expectations that DynamoDB Local does not confirm.
const (
	refusedBySDK = "the SDK refuses it before it is sent"
	takenByLocal = "DynamoDB Local does not look; dynalite's tests, which run against AWS, tell the error"
	notInLocal   = "DynamoDB Local does not know the setting; API Reference"
	ours         = "DynamoDB has it, dynamotest has not"
)

const validation, missing, limit = "ValidationException", "ResourceNotFoundException", "LimitExceededException"

func refusedAsExpected(t *testing.T, refusals []refusal) {
	t.Helper()
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			db := New(Config{})
			for _, request := range r.before {
				_, err := call(t.Context(), db, "tab", request)
				require.NoError(t, err)
			}
			_, err := call(t.Context(), db, "tab", r.request)
			assertAPIError(t, err, r.code, r.text)
		})
	}
}

func refusedByDynamoDBLocal(t *testing.T, refusals []refusal) {
	t.Helper()
	client := dynamolocaltest.Client(t)
	for i, r := range refusals {
		if r.differs != "" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			table := fmt.Sprintf("tab%d", i)
			for _, request := range r.before {
				_, err := call(t.Context(), client, table, request)
				require.NoError(t, err)
			}
			_, err := call(t.Context(), client, table, r.request)
			text := r.local
			if text == "" {
				text = r.text
			}
			assertAPIError(t, err, r.code, text)
		})
	}
}

func assertAPIError(t *testing.T, err error, code, text string) {
	t.Helper()
	var refused smithy.APIError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, code, refused.ErrorCode())
	assert.Equal(t, text, refused.ErrorMessage())
}

// call sends a request to a *Database or a *dynamodb.Client. A request without a table name is for
// the given table.
func call(ctx context.Context, to any, table string, request any) (any, error) {
	db, _ := to.(*Database)
	client, _ := to.(*dynamodb.Client)
	switch in := request.(type) {
	case *dynamodb.CreateTableInput:
		return send(ctx, in, &in.TableName, table, db.CreateTable, client.CreateTable)(db == nil)
	case *dynamodb.DescribeTableInput:
		return send(ctx, in, &in.TableName, table, db.DescribeTable, client.DescribeTable)(db == nil)
	case *dynamodb.UpdateTableInput:
		return send(ctx, in, &in.TableName, table, db.UpdateTable, client.UpdateTable)(db == nil)
	case *dynamodb.DeleteTableInput:
		return send(ctx, in, &in.TableName, table, db.DeleteTable, client.DeleteTable)(db == nil)
	case *dynamodb.ListTablesInput:
		return send(ctx, in, nil, table, db.ListTables, client.ListTables)(db == nil)
	case *dynamodb.UpdateTimeToLiveInput:
		return send(ctx, in, &in.TableName, table, db.UpdateTimeToLive, client.UpdateTimeToLive)(db == nil)
	case *dynamodb.DescribeTimeToLiveInput:
		return send(ctx, in, &in.TableName, table, db.DescribeTimeToLive, client.DescribeTimeToLive)(db == nil)
	}
	return nil, fmt.Errorf("no operation for %T", request)
}

func send[In, Out any](
	ctx context.Context, in *In, name **string, table string,
	engine func(*In) (*Out, error), local func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
) func(remote bool) (any, error) {
	return func(remote bool) (any, error) {
		if name != nil && *name == nil {
			*name = &table
			defer func() { *name = nil }()
		}
		if remote {
			return local(ctx, in)
		}
		return engine(in)
	}
}

func definitions(names ...string) []types.AttributeDefinition {
	list := make([]types.AttributeDefinition, len(names))
	for i, name := range names {
		list[i] = types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	return list
}

func keyOfNames(names ...string) []types.KeySchemaElement {
	roles := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange, types.KeyTypeRange}
	list := make([]types.KeySchemaElement, len(names))
	for i, name := range names {
		list[i] = types.KeySchemaElement{AttributeName: aws.String(name), KeyType: roles[i]}
	}
	return list
}

func capacity(read, write int64) *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
}

// byRequest returns an on-demand table with the key a, or a and b, after some changes.
func byRequest(changes ...func(*dynamodb.CreateTableInput)) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		AttributeDefinitions: definitions("a"), KeySchema: keyOfNames("a"), BillingMode: types.BillingModePayPerRequest,
	}
	for _, change := range changes {
		change(in)
	}
	return in
}

// provisioned returns a table with 5 read and 6 write units, and each index with 2 and 3.
func provisioned(changes ...func(*dynamodb.CreateTableInput)) *dynamodb.CreateTableInput {
	in := byRequest(changes...)
	in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, capacity(5, 6)
	for i := range in.GlobalSecondaryIndexes {
		in.GlobalSecondaryIndexes[i].ProvisionedThroughput = capacity(2, 3)
	}
	return in
}

// globals adds indexes with the key g to a table.
func globals(names ...string) func(*dynamodb.CreateTableInput) {
	return func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, definitions("g")...)
		for _, name := range names {
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: aws.String(name), KeySchema: keyOfNames("g"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			})
		}
	}
}

// locals sets the key a and b of a table, and adds indexes with the key a and l.
func locals(names ...string) func(*dynamodb.CreateTableInput) {
	return func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(definitions("a", "b"), definitions("l")...)
		in.KeySchema = keyOfNames("a", "b")
		for _, name := range names {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: aws.String(name), KeySchema: keyOfNames("a", "l"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			})
		}
	}
}

// global returns a table with the index gix after a change.
func global(change func(*types.GlobalSecondaryIndex)) *dynamodb.CreateTableInput {
	return byRequest(globals("gix"), func(in *dynamodb.CreateTableInput) { change(&in.GlobalSecondaryIndexes[0]) })
}

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%02d", prefix, i)
	}
	return list
}
