package engine

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Touch is an item that a request names, or the table of the request if it names no item.
type Touch struct {
	Table string
	Index string
	// Key is nil if the request names no item, or if the table does not exist.
	Key    value.Item
	Writes bool
	// Eventual means that it is an eventually consistent read of a table.
	Eventual bool
}

// Touches returns what a request accesses; see [Touches].
func (db *Database) Touches(in any) []Touch { return Touches(in, db.keyOf) }

// Touches returns what a request accesses: the actions of a transaction in their order, or the
// items of a batch by the names of the tables and then in their order. KeyOf returns the key of an
// item to be put into a table, or nil if the table does not exist.
func Touches(in any, keyOf KeyOf) []Touch {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		t := touch(in.TableName, in.Key)
		t.Eventual = !aws.ToBool(in.ConsistentRead)
		return []Touch{t}
	case *dynamodb.PutItemInput:
		return []Touch{keyOf.touchPut(in.TableName, in.Item)}
	case *dynamodb.UpdateItemInput:
		return []Touch{touchWrite(in.TableName, in.Key)}
	case *dynamodb.DeleteItemInput:
		return []Touch{touchWrite(in.TableName, in.Key)}
	case *dynamodb.QueryInput:
		t := touch(in.TableName, nil)
		t.Index = aws.ToString(in.IndexName)
		t.Eventual = t.Index == "" && !aws.ToBool(in.ConsistentRead)
		return []Touch{t}
	case *dynamodb.ScanInput:
		t := touch(in.TableName, nil)
		t.Index = aws.ToString(in.IndexName)
		t.Eventual = t.Index == "" && !aws.ToBool(in.ConsistentRead)
		return []Touch{t}
	case *dynamodb.BatchGetItemInput:
		var all []Touch
		for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
			for _, key := range in.RequestItems[table].Keys {
				t := touch(&table, key)
				t.Eventual = !aws.ToBool(in.RequestItems[table].ConsistentRead)
				all = append(all, t)
			}
		}
		return all
	case *dynamodb.BatchWriteItemInput:
		var all []Touch
		for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
			for _, request := range in.RequestItems[table] {
				switch {
				case request.PutRequest != nil:
					all = append(all, keyOf.touchPut(&table, request.PutRequest.Item))
				case request.DeleteRequest != nil:
					all = append(all, touchWrite(&table, request.DeleteRequest.Key))
				default:
					all = append(all, touch(&table, nil))
				}
			}
		}
		return all
	case *dynamodb.TransactGetItemsInput:
		all := make([]Touch, len(in.TransactItems))
		for i, action := range in.TransactItems {
			if action.Get != nil {
				all[i] = touch(action.Get.TableName, action.Get.Key)
			}
		}
		return all
	case *dynamodb.TransactWriteItemsInput:
		all := make([]Touch, len(in.TransactItems))
		for i, action := range in.TransactItems {
			switch {
			case action.Put != nil:
				all[i] = keyOf.touchPut(action.Put.TableName, action.Put.Item)
			case action.Update != nil:
				all[i] = touchWrite(action.Update.TableName, action.Update.Key)
			case action.Delete != nil:
				all[i] = touchWrite(action.Delete.TableName, action.Delete.Key)
			case action.ConditionCheck != nil:
				all[i] = touch(action.ConditionCheck.TableName, action.ConditionCheck.Key)
			}
		}
		return all
	}
	if named, ok := tableOf(in); ok {
		return []Touch{touch(named, nil)}
	}
	return nil
}

// tableOf returns the table of an operation on tables.
func tableOf(in any) (name *string, ok bool) {
	switch in := in.(type) {
	case *dynamodb.CreateTableInput:
		return in.TableName, true
	case *dynamodb.DescribeTableInput:
		return in.TableName, true
	case *dynamodb.UpdateTableInput:
		return in.TableName, true
	case *dynamodb.DeleteTableInput:
		return in.TableName, true
	case *dynamodb.UpdateTimeToLiveInput:
		return in.TableName, true
	case *dynamodb.DescribeTimeToLiveInput:
		return in.TableName, true
	}
	return nil, false
}

func touch(table *string, key value.Item) Touch {
	return Touch{Table: tableName(aws.ToString(table)), Key: key}
}

func touchWrite(table *string, key value.Item) Touch {
	t := touch(table, key)
	t.Writes = true
	return t
}

// KeyOf returns the key of an item in a table, or nil if the table does not exist.
type KeyOf func(table string, item value.Item) value.Item

func (keyOf KeyOf) touchPut(table *string, item value.Item) Touch {
	return touchWrite(table, keyOf(tableName(aws.ToString(table)), item))
}

func (db *Database) keyOf(table string, item value.Item) value.Item {
	db.mu.RLock()
	t := db.tables[table]
	db.mu.RUnlock()
	if t == nil {
		return nil
	}
	return t.key.keyOf(item)
}

// TableName returns the name of a table, given its name or its ARN.
func TableName(nameOrARN string) string { return tableName(nameOrARN) }

// HasIndex reports whether a table has an index.
func (db *Database) HasIndex(table, index string) bool {
	db.mu.RLock()
	t := db.tables[table]
	db.mu.RUnlock()
	if t == nil {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.index(index) != nil
}
