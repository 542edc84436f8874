package expression

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// path is a document path: the name of an attribute, followed by names in maps and indexes in
// lists.
type path []element

type element struct {
	name  string
	index int // -1 for a name
}

func (e element) isIndex() bool { return e.index >= 0 }

func (e element) String() string {
	if e.isIndex() {
		return "[" + strconv.Itoa(e.index) + "]"
	}
	return e.name
}

// String returns the path in the form of error messages: [a, b, [0]].
func (p path) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, e := range p {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e.String())
	}
	b.WriteByte(']')
	return b.String()
}

func (p path) equal(other path) bool {
	if len(p) != len(other) {
		return false
	}
	for i := range p {
		if p[i] != other[i] {
			return false
		}
	}
	return true
}

// in returns the value at the path in an item, nil if there is none.
func (p path) in(item value.Item) types.AttributeValue {
	v := item[p[0].name]
	for _, e := range p[1:] {
		if v = e.in(v); v == nil {
			return nil
		}
	}
	return v
}

// in returns the element of a map or list, nil if there is none.
func (e element) in(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		if !e.isIndex() {
			return v.Value[e.name]
		}
	case *types.AttributeValueMemberL:
		if e.isIndex() && e.index < len(v.Value) {
			return v.Value[e.index]
		}
	}
	return nil
}

// relation describes how two paths of different places relate.
type relation uint8

const (
	apart     relation = iota
	overlaps           // one equals the other, or contains it
	conflicts          // one treats a value as a map, the other as a list
)

func (p path) relationTo(other path) relation {
	for i := range min(len(p), len(other)) {
		if p[i] == other[i] {
			continue
		}
		if p[i].isIndex() != other[i].isIndex() {
			return conflicts
		}
		return apart
	}
	return overlaps
}
