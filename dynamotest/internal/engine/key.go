package engine

import (
	"encoding/binary"
	"hash/crc64"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/number"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// keyAttribute is an attribute of a key.
type keyAttribute struct {
	name string
	kind types.ScalarAttributeType
}

// keySchema is the key of a table or index. The name of the sort attribute is empty if there is
// none.
type keySchema struct {
	partition, sort keyAttribute
}

func (k keySchema) attributes() []keyAttribute {
	if k.sort.name == "" {
		return []keyAttribute{k.partition}
	}
	return []keyAttribute{k.partition, k.sort}
}

// position is the place of a row in a table or index. As in DynamoDB, partitions have the order of
// a hash, so that nobody relies on another order. Rows of an index with equal keys have the order
// of tie.
type position struct {
	partition, sort, tie string
}

func (p position) compare(q position) int {
	if c := strings.Compare(p.partition, q.partition); c != 0 {
		return c
	}
	if c := strings.Compare(p.sort, q.sort); c != 0 {
		return c
	}
	return strings.Compare(p.tie, q.tie)
}

// positionOf returns the position of an item with a valid key.
func (k keySchema) positionOf(item value.Item) position {
	p := position{partition: partitionOf(item[k.partition.name])}
	if k.sort.name != "" {
		p.sort = sortable(item[k.sort.name])
	}
	return p
}

var hashTable = crc64.MakeTable(crc64.ECMA)

// partitionOf returns the hash of a partition key, followed by the key.
func partitionOf(v types.AttributeValue) string {
	buf := make([]byte, hashSize, 64)
	buf = appendSortable(buf, v)
	binary.BigEndian.PutUint64(buf, crc64.Checksum(buf[hashSize:], hashTable))
	return string(buf)
}

const hashSize = 8

// tieOf orders rows of an index with equal keys. Its hash makes the order differ from that of the
// table.
func tieOf(p position) string {
	hash := crc64.Update(crc64.Checksum([]byte(p.sort), hashTable), hashTable, []byte(p.partition))
	buf := make([]byte, hashSize, hashSize+len(p.partition)+1+len(p.sort))
	binary.BigEndian.PutUint64(buf, hash)
	buf = append(buf, p.partition...)
	buf = append(buf, p.sort...)
	return string(buf)
}

// sortable returns a key value as bytes that sort like DynamoDB sorts the values.
func sortable(v types.AttributeValue) string { return string(appendSortable(nil, v)) }

// hasDuplicates reports whether two keys are equal, before their table is known.
func hasDuplicates(keys []value.Item) bool {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		var text []byte
		for _, name := range slices.Sorted(maps.Keys(key)) {
			text = appendText(text, []byte(name))
			text = appendText(text, []byte(value.Type(key[name])))
			text = appendText(text, appendSortable(nil, key[name]))
		}
		if seen[string(text)] {
			return true
		}
		seen[string(text)] = true
	}
	return false
}

func appendText(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendSortable(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return append(dst, v.Value...)
	case *types.AttributeValueMemberB:
		return append(dst, v.Value...)
	case *types.AttributeValueMemberN:
		n, _ := number.Parse(v.Value) // it is valid, since it was normalised
		return n.AppendKey(dst)
	}
	return dst
}
