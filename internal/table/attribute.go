package table

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item of a table, or a key.
type Item = map[string]types.AttributeValue

// StringValue returns a text attribute.
func StringValue(s string) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: s}
}

// NumberValue returns a number attribute.
func NumberValue[N int | int64 | uint64](n N) types.AttributeValue {
	if n >= 0 {
		return &types.AttributeValueMemberN{Value: strconv.FormatUint(uint64(n), 10)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

// BinaryValue never holds a nil slice. The SDK leaves a nil slice out of the request, and DynamoDB
// then refuses the attribute as empty.
func BinaryValue(b []byte) types.AttributeValue {
	if b == nil {
		b = []byte{}
	}
	return &types.AttributeValueMemberB{Value: b}
}

// StringOf returns the value of a text attribute.
func StringOf(v types.AttributeValue) (string, bool) {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return s.Value, true
}

// UintOf returns the value of a number attribute without a sign.
func UintOf(v types.AttributeValue) (uint64, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	u, err := strconv.ParseUint(n.Value, 10, 64)
	return u, err == nil
}

// IntOf returns the value of a number attribute.
func IntOf(v types.AttributeValue) (int64, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return i, err == nil
}

// BytesOf accepts binary and text. The PHP member of the event-store-adapter family writes payloads
// as text, and so did the first versions of the Go member. The others write binary.
func BytesOf(v types.AttributeValue) ([]byte, bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		return v.Value, true
	case *types.AttributeValueMemberS:
		return []byte(v.Value), true
	default:
		return nil, false
	}
}

// ItemSize returns the size that DynamoDB counts against its limits. Names and values count in
// bytes, a number at most 21 bytes, a map or list 3 bytes plus 1 for each element. The result is
// never less than the size that the service counts.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func ItemSize(it Item) int {
	size := 0
	for name, value := range it {
		size += len(name) + ValueSize(value)
	}
	return size
}

// ValueSize returns the size of a value as ItemSize counts it.
func ValueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return min(21, len(v.Value)/2+2)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberM:
		size := 3
		for name, value := range v.Value {
			size += 1 + len(name) + ValueSize(value)
		}
		return size
	case *types.AttributeValueMemberL:
		size := 3
		for _, value := range v.Value {
			size += 1 + ValueSize(value)
		}
		return size
	case *types.AttributeValueMemberSS:
		size := 0
		for _, value := range v.Value {
			size += len(value)
		}
		return size
	case *types.AttributeValueMemberNS:
		return 21 * len(v.Value)
	case *types.AttributeValueMemberBS:
		size := 0
		for _, value := range v.Value {
			size += len(value)
		}
		return size
	default:
		return 1
	}
}

// ListBytes is the largest size of a number in a list.
const ListBytes = 22

// ListValue encodes numbers as a binary attribute.
func ListValue(numbers []uint64) types.AttributeValue {
	values := make([]types.AttributeValue, len(numbers))
	for i, n := range numbers {
		values[i] = NumberValue(n)
	}
	return &types.AttributeValueMemberL{Value: values}
}

// NumbersOf returns the numbers of a list in ascending order.
func NumbersOf(v types.AttributeValue) (numbers []uint64) {
	list, _ := v.(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	for _, value := range list.Value {
		if n, ok := UintOf(value); ok && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
