package dynamotest

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// withheld holds the items of a batch that a proxy does not send, and reports as unprocessed.
type withheld struct {
	keys   map[string]types.KeysAndAttributes
	writes map[string][]types.WriteRequest
}

// takeWithheld removes the marked items from the input of a batch. Marks are in the order of
// [engine.Touches]. It returns nil if there are no marks.
func takeWithheld(in any, marks []bool) *withheld {
	if !slices.Contains(marks, true) {
		return nil
	}
	w := &withheld{keys: map[string]types.KeysAndAttributes{}, writes: map[string][]types.WriteRequest{}}
	switch in := in.(type) {
	case *dynamodb.BatchGetItemInput:
		for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
			asked := in.RequestItems[table]
			left := asked
			asked.Keys, left.Keys, marks = split(asked.Keys, marks)
			setOrDelete(in.RequestItems, table, asked, len(asked.Keys) > 0)
			setOrDelete(w.keys, table, left, len(left.Keys) > 0)
		}
	case *dynamodb.BatchWriteItemInput:
		for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
			var asked, left []types.WriteRequest
			asked, left, marks = split(in.RequestItems[table], marks)
			setOrDelete(in.RequestItems, table, asked, len(asked) > 0)
			setOrDelete(w.writes, table, left, len(left) > 0)
		}
	}
	return w
}

// split separates marked from unmarked items, and returns the remaining marks.
func split[T any](items []T, marks []bool) (unmarked, marked []T, rest []bool) {
	for i, item := range items {
		if marks[i] {
			marked = append(marked, item)
		} else {
			unmarked = append(unmarked, item)
		}
	}
	return unmarked, marked, marks[len(items):]
}

func setOrDelete[V any](m map[string]V, key string, v V, set bool) {
	if set {
		m[key] = v
	} else {
		delete(m, key)
	}
}

// isEmptyBatch reports whether a batch has no items left.
func isEmptyBatch(in any) bool {
	switch in := in.(type) {
	case *dynamodb.BatchGetItemInput:
		return len(in.RequestItems) == 0
	case *dynamodb.BatchWriteItemInput:
		return len(in.RequestItems) == 0
	}
	return false
}

// putInto adds the items to the unprocessed ones of an output.
func (w *withheld) putInto(out any) {
	if w == nil {
		return
	}
	switch out := out.(type) {
	case *dynamodb.BatchGetItemOutput:
		if out.Responses == nil {
			out.Responses = map[string][]map[string]types.AttributeValue{}
		}
		if out.UnprocessedKeys == nil {
			out.UnprocessedKeys = map[string]types.KeysAndAttributes{}
		}
		for table, left := range w.keys {
			left.Keys = append(left.Keys, out.UnprocessedKeys[table].Keys...)
			out.UnprocessedKeys[table] = left
			if _, ok := out.Responses[table]; !ok {
				out.Responses[table] = []map[string]types.AttributeValue{}
			}
		}
	case *dynamodb.BatchWriteItemOutput:
		if out.UnprocessedItems == nil {
			out.UnprocessedItems = map[string][]types.WriteRequest{}
		}
		for table, left := range w.writes {
			out.UnprocessedItems[table] = append(out.UnprocessedItems[table], left...)
		}
	}
}
