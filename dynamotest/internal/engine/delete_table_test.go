package engine

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADeletedTableIsGone(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	before := describe(t, db, byRequest())
	held, err := db.table(aws.String("tab"))
	require.NoError(t, err)

	out, err := db.DeleteTable(&dynamodb.DeleteTableInput{TableName: aws.String("tab")})
	require.NoError(t, err)
	assert.Equal(t, types.TableStatusDeleting, out.TableDescription.TableStatus)

	_, err = db.DescribeTable(&dynamodb.DescribeTableInput{TableName: aws.String("tab")})
	assertAPIError(t, err, missing, "Requested resource not found: Table: tab not found")
	assertAPIError(t, db.lock(held), missing, "Requested resource not found")
	after := describe(t, db, byRequest())
	assert.NotEqual(t, before.TableId, after.TableId, "a table of the same name is another one")
}

func TestTablesComeAndGoConcurrently(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	var wg sync.WaitGroup
	var created, deleted atomic.Int32
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 50 {
				if _, err := db.CreateTable(named("tab", provisioned(globals("gix")))); err == nil {
					created.Add(1)
				}
				_, _ = db.UpdateTable(&dynamodb.UpdateTableInput{
					TableName: aws.String("tab"), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{removeIndex("gix")},
				})
				_, _ = db.DescribeTable(&dynamodb.DescribeTableInput{TableName: aws.String("tab")})
				_, _ = db.ListTables(&dynamodb.ListTablesInput{})
				if _, err := db.DeleteTable(&dynamodb.DeleteTableInput{TableName: aws.String("tab")}); err == nil {
					deleted.Add(1)
				}
			}
		}()
	}
	wg.Wait()
	assert.Empty(t, db.tableNames())
	assert.Equal(t, created.Load(), deleted.Load(), "each table is deleted once")
}

func named(table string, in *dynamodb.CreateTableInput) *dynamodb.CreateTableInput {
	in.TableName = &table
	return in
}

func TestDeleteTableRefuses(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, deleteTableRefusals())
}

func TestDeleteTableRefusesWhatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, deleteTableRefusals())
}

func deleteTableRefusals() []refusal {
	return []refusal{
		{
			name: "a missing table", request: &dynamodb.DeleteTableInput{},
			code: missing, text: "Requested resource not found: Table: tab not found", local: "Cannot do operations on a non-existent table",
		},
		{
			name:    "a protected table",
			before:  []any{byRequest(), &dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(true)}},
			request: &dynamodb.DeleteTableInput{},
			code:    validation, text: "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
		},
	}
}
