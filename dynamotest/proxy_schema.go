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

// schemas are those of the tables behind a proxy. A proxy asks for one when a request puts an item,
// whose key it cannot know otherwise, or when a fault is about an index.
type schemas struct {
	client *dynamodb.Client

	mu      sync.Mutex
	byTable map[string]schema
}

// schema is what a proxy needs to know of a table. The zero value is that of a table that does not
// exist.
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

// of returns the schema of a table, the zero schema if it does not exist.
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
		return schema{}, nil // the request itself meets the error, or a table that has been created since
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

// learn forgets what a request may have changed.
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
