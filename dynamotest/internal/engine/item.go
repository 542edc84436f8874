package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Largest sizes of key values in bytes. Source: Developer Guide, "Quotas in Amazon DynamoDB".
const (
	maxPartitionKeySize = 2048
	maxSortKeySize      = 1024
)

// checkKeyIn checks the key of an item to be put.
func (t *table) checkKeyIn(item value.Item) error {
	for _, a := range t.key.attributes() {
		if _, ok := item[a.name]; !ok {
			return apierror.Validation("One or more parameter values were invalid: Missing the key %s in the item", a.name)
		}
	}
	for _, a := range t.key.attributes() {
		if v := item[a.name]; value.Type(v) != string(a.kind) {
			err := apierror.Validation("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s",
				a.name, a.kind, value.Type(v))
			if !isScalar(v) {
				return err
			}
			return unfit{err}
		}
	}
	return t.checkKeyValues(item)
}

const mismatch = "The provided key element does not match the schema"

// checkKey checks that a key has the table's key attributes and no others.
func (t *table) checkKey(key value.Item) error {
	attributes := t.key.attributes()
	if len(key) != len(attributes) {
		return apierror.Validation(mismatch)
	}
	for _, a := range attributes {
		if v := key[a.name]; value.Type(v) != string(a.kind) {
			if v != nil && !isScalar(v) {
				return apierror.Validation(mismatch)
			}
			return unfit{apierror.Validation(mismatch)}
		}
	}
	return t.checkKeyValues(key)
}

// checkKeyValues checks key values that have the right types.
func (t *table) checkKeyValues(item value.Item) error {
	for i, a := range t.key.attributes() {
		v := item[a.name]
		if kind := emptyKind(v); kind != "" {
			return apierror.Validation("One or more parameter values are not valid. The AttributeValue for a key attribute "+
				"cannot contain an empty %s value. Key: %s", kind, a.name)
		}
		if err := checkKeySize(i, v); err != nil {
			return unfit{err}
		}
	}
	return nil
}

// checkKeySize checks the i-th value of a key.
func checkKeySize(i int, v types.AttributeValue) error {
	switch size := value.Size(v); {
	case i == 0 && size > maxPartitionKeySize:
		return apierror.Validation("One or more parameter values were invalid: " +
			"Size of hashkey has exceeded the maximum size limit of2048 bytes")
	case i == 1 && size > maxSortKeySize:
		return apierror.Validation("One or more parameter values were invalid: " +
			"Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// isScalar reports whether a value has a type that is allowed for keys.
func isScalar(v types.AttributeValue) bool {
	switch value.Type(v) {
	case "S", "N", "B":
		return true
	}
	return false
}

// emptyKind returns the type of an empty text or binary.
func emptyKind(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		if v.Value == "" {
			return "string"
		}
	case *types.AttributeValueMemberB:
		if len(v.Value) == 0 {
			return "binary"
		}
	}
	return ""
}

// checkItem checks the index key attributes that an item has. An item without them is not in the
// index.
func (ix *index) checkItem(item value.Item) error {
	for i, a := range ix.key.attributes() {
		v, ok := item[a.name]
		if !ok {
			continue
		}
		if kind := value.Type(v); kind != string(a.kind) {
			err := apierror.Validation("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s",
				a.name, a.kind, kind, ix.name)
			if !isScalar(v) {
				return err
			}
			return unfit{err}
		}
		if kind := emptyKind(v); kind != "" {
			return apierror.Validation("One or more parameter values are not valid. A value specified for a secondary index key "+
				"is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s",
				kind, ix.name, a.name)
		}
		if err := checkKeySize(i, v); err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns the key of an item.
func (k keySchema) keyOf(item value.Item) value.Item {
	key := make(value.Item, 4)
	for _, a := range k.attributes() {
		key[a.name] = item[a.name]
	}
	return key
}
