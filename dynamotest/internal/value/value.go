// Package value implements the rules for attribute values: which are valid, their sizes, when two
// are equal, and their order.
//
// Stored values never change, because items share them.
package value

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/number"
)

// Item is an item, or a map in one.
type Item = map[string]types.AttributeValue

// Type returns the name of the value's type in expressions and in JSON: S, N, B, BOOL, NULL, L, M,
// SS, NS or BS. It returns "" for nil.
func Type(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	default:
		return ""
	}
}

// Compare orders two values of the same type S, N or B: strings and binaries by their bytes,
// numbers by their value. For other pairs ok is false.
func Compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, same := b.(*types.AttributeValueMemberN); same {
			return number.Compare(parsed(a.Value), parsed(b.Value)), true
		}
	case *types.AttributeValueMemberB:
		if b, same := b.(*types.AttributeValueMemberB); same {
			return bytes.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

// parsed reads a number that Normalize has accepted.
func parsed(text string) number.Number {
	n, _ := number.Parse(text)
	return n
}

// Equal reports whether two values are equal. The order of a list matters, that of a set does not.
func Equal(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, same := b.(*types.AttributeValueMemberS)
		return same && a.Value == b.Value
	case *types.AttributeValueMemberN: // normal numbers are equal as text
		b, same := b.(*types.AttributeValueMemberN)
		return same && a.Value == b.Value
	case *types.AttributeValueMemberB:
		b, same := b.(*types.AttributeValueMemberB)
		return same && bytes.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberBOOL:
		b, same := b.(*types.AttributeValueMemberBOOL)
		return same && a.Value == b.Value
	case *types.AttributeValueMemberNULL:
		_, same := b.(*types.AttributeValueMemberNULL)
		return same
	case *types.AttributeValueMemberL:
		b, same := b.(*types.AttributeValueMemberL)
		return same && equalLists(a.Value, b.Value)
	case *types.AttributeValueMemberM:
		b, same := b.(*types.AttributeValueMemberM)
		return same && EqualItems(a.Value, b.Value)
	case *types.AttributeValueMemberSS:
		b, same := b.(*types.AttributeValueMemberSS)
		return same && equalSets(a.Value, b.Value)
	case *types.AttributeValueMemberNS:
		b, same := b.(*types.AttributeValueMemberNS)
		return same && equalSets(a.Value, b.Value)
	case *types.AttributeValueMemberBS:
		b, same := b.(*types.AttributeValueMemberBS)
		return same && equalSets(texts(a.Value), texts(b.Value))
	default:
		return a == nil && b == nil
	}
}

// EqualItems reports whether two items have the same attributes with equal values.
func EqualItems(a, b Item) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if other, ok := b[name]; !ok || !Equal(v, other) {
			return false
		}
	}
	return true
}

func equalLists(a, b []types.AttributeValue) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// equalSets compares sets, which have no duplicates.
func equalSets[E cmp.Ordered](a, b []E) bool {
	if len(a) != len(b) {
		return false
	}
	in := make(map[E]struct{}, len(a))
	for _, e := range a {
		in[e] = struct{}{}
	}
	for _, e := range b {
		if _, ok := in[e]; !ok {
			return false
		}
	}
	return true
}

func texts(values [][]byte) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
