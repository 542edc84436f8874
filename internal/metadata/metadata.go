// Package metadata stores the metadata of messages in items of DynamoDB. It keeps metadata that is
// not valid UTF-8, such as the binary headers of Kafka. DynamoDB accepts only UTF-8 in strings, and
// the SDK would replace invalid bytes.
package metadata

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Names of the attributes that hold metadata. An attribute that would be empty is absent.
const (
	Attribute = "metadata" // a map of strings
	// BinaryAttribute is a list of the keys and values that the map cannot hold: key, value, key,
	// value, and so on.
	BinaryAttribute = "metadata_binary"
)

// maxKeyBytes is the limit of DynamoDB for the name of an attribute, which also holds for the keys
// of a map.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxKeyBytes = 64<<10 - 1

// isText reports whether the map can hold an entry.
func isText(key, value string) bool {
	return key != "" && len(key) <= maxKeyBytes && utf8.ValidString(key) && utf8.ValidString(value)
}

// Binary returns the entries that cannot be stored as strings, sorted by key. The result is usually
// nil.
func Binary(metadata map[string]string) (entries [][2][]byte) {
	for key, value := range metadata {
		if !isText(key, value) {
			entries = append(entries, [2][]byte{[]byte(key), []byte(value)})
		}
	}
	slices.SortFunc(entries, func(a, b [2][]byte) int { return strings.Compare(string(a[0]), string(b[0])) })
	return entries
}

// Text returns the entries that can be stored as strings. The result is usually metadata itself.
func Text(metadata map[string]string) map[string]string {
	binary := Binary(metadata)
	if len(binary) == 0 {
		return metadata
	}
	text := maps.Clone(metadata)
	for _, entry := range binary {
		delete(text, string(entry[0]))
	}
	return text
}

// Join merges the results of Text and Binary. It may modify text.
func Join(text map[string]string, binary [][2][]byte) map[string]string {
	if text == nil && len(binary) > 0 {
		text = make(map[string]string, len(binary))
	}
	for _, entry := range binary {
		text[string(entry[0])] = string(entry[1])
	}
	return text
}

// Put adds the attributes for metadata to an item.
func Put(item map[string]types.AttributeValue, metadata map[string]string) {
	binary := Binary(metadata)
	if len(metadata) > len(binary) {
		values := make(map[string]types.AttributeValue, len(metadata))
		for key, value := range metadata {
			if len(binary) == 0 || isText(key, value) {
				values[key] = &types.AttributeValueMemberS{Value: value}
			}
		}
		item[Attribute] = &types.AttributeValueMemberM{Value: values}
	}
	if len(binary) > 0 {
		list := make([]types.AttributeValue, 0, 2*len(binary))
		for _, entry := range binary {
			list = append(list, &types.AttributeValueMemberB{Value: entry[0]}, &types.AttributeValueMemberB{Value: entry[1]})
		}
		item[BinaryAttribute] = &types.AttributeValueMemberL{Value: list}
	}
}

// Size returns the bytes that DynamoDB counts for the attributes of metadata.
func Size(metadata map[string]string) (size int) {
	text, binary := false, false
	for key, value := range metadata {
		size += 1 + len(key) + len(value)
		if isText(key, value) {
			text = true
		} else {
			binary = true
			size++ // key and value are two elements of the list
		}
	}
	if text {
		size += len(Attribute) + 3
	}
	if binary {
		size += len(BinaryAttribute) + 3
	}
	return size
}

// Of reads the metadata of an item. If the attributes are malformed, ok is false and wrong is the
// name of the malformed attribute or entry.
func Of(item map[string]types.AttributeValue) (metadata map[string]string, wrong string, ok bool) {
	if values, is := item[Attribute].(*types.AttributeValueMemberM); is {
		if metadata, wrong, ok = OfMap(values); !ok {
			return nil, wrong, false
		}
	}
	list, is := item[BinaryAttribute].(*types.AttributeValueMemberL)
	if !is {
		return metadata, "", true
	}
	if len(list.Value)%2 != 0 {
		return nil, BinaryAttribute, false
	}
	if metadata == nil {
		metadata = make(map[string]string, len(list.Value)/2)
	}
	for entry := range slices.Chunk(list.Value, 2) {
		key, isKey := entry[0].(*types.AttributeValueMemberB)
		value, isValue := entry[1].(*types.AttributeValueMemberB)
		if !isKey || !isValue {
			return nil, BinaryAttribute, false
		}
		metadata[string(key.Value)] = string(value.Value)
	}
	return metadata, "", true
}

// OfMap reads the map of strings alone.
func OfMap(values *types.AttributeValueMemberM) (metadata map[string]string, wrong string, ok bool) {
	metadata = make(map[string]string, len(values.Value))
	for key, value := range values.Value {
		text, is := value.(*types.AttributeValueMemberS)
		if !is {
			return nil, key, false
		}
		metadata[key] = text.Value
	}
	return metadata, "", true
}
