package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// schemas are the schemas of the tables behind a proxy. A proxy needs one if a request puts an
// item, whose key it does not know otherwise, or if a fault has the condition [Index].
type schemas struct {
	client *dynamodb.Client

	mu      sync.Mutex
	byTable map[string]schema
}

// schema is the part of a table description that a proxy needs. The zero value is the schema of a
// table that does not exist.
type schema struct {
	key     []string // names of attributes
	indexes map[string]bool
}

func (s schema) keyOf(item value.Item) value.Item {
	if s.key == nil {
		return nil
	}
	key := make(value.Item, len(s.key))
	for _, name := range s.key {
		if v, ok := item[name]; ok {
			key[name] = v
		}
	}
	return key
}

// of returns the schema of a table, and the zero schema if the table does not exist.
func (s *schemas) of(ctx context.Context, table string) (schema, error) {
	s.mu.Lock()
	known, ok := s.byTable[table]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		// An unknown schema is no error here: the request gets the same error itself, unless the
		// table is created meanwhile.
		return schema{}, nil
	}
	if err != nil {
		return schema{}, fmt.Errorf("describe table %q to know its keys and indexes: %w", table, err)
	}
	described := schema{indexes: map[string]bool{}}
	for _, element := range out.Table.KeySchema {
		described.key = append(described.key, aws.ToString(element.AttributeName))
	}
	for _, index := range out.Table.GlobalSecondaryIndexes {
		described.indexes[aws.ToString(index.IndexName)] = true
	}
	for _, index := range out.Table.LocalSecondaryIndexes {
		described.indexes[aws.ToString(index.IndexName)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byTable[table] = described
	return described, nil
}

// learn removes the schema of a table that a request may have changed.
func (s *schemas) learn(in any) {
	var changed *string
	switch in := in.(type) {
	case *dynamodb.CreateTableInput:
		changed = in.TableName
	case *dynamodb.UpdateTableInput:
		changed = in.TableName
	case *dynamodb.DeleteTableInput:
		changed = in.TableName
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byTable, engine.TableName(aws.ToString(changed)))
}
