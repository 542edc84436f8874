package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// DeleteTable deletes a table. It is deleted immediately, although the reply has the status
// DELETING like DynamoDB's.
func (db *Database) DeleteTable(in *dynamodb.DeleteTableInput) (*dynamodb.DeleteTableOutput, error) {
	t, err := db.named(in.TableName)
	if err != nil {
		return nil, err
	}
	if db.lock(t) != nil {
		return nil, tableNotFound(t.name)
	}
	defer t.mu.Unlock()
	if t.settings.deletionProtection {
		return nil, apierror.Validation("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	description := t.describe(types.TableStatusDeleting)
	t.dropped = true
	// No goroutine waits for a table while it holds the map, so the locks may be taken in this
	// order.
	db.mu.Lock()
	delete(db.tables, t.name)
	db.mu.Unlock()
	return &dynamodb.DeleteTableOutput{TableDescription: description}, nil
}
