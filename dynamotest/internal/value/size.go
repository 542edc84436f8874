package value

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// MaxItemSize is the largest size of an item in bytes, including names.
const MaxItemSize = 400 << 10

// ItemSize returns the size of an item in bytes, including names. Source: Developer Guide,
// "DynamoDB item sizes and formats".
func ItemSize(item Item) int {
	size := 0
	for name, v := range item {
		size += len(name) + Size(v)
	}
	return size
}

// Size returns the size of a value in bytes.
func Size(v types.AttributeValue) int {
	const container = 3 // of a list or map; each element adds one more
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return parsed(v.Value).Size()
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberL:
		size := container
		for _, e := range v.Value {
			size += 1 + Size(e)
		}
		return size
	case *types.AttributeValueMemberM:
		return container + len(v.Value) + ItemSize(v.Value)
	case *types.AttributeValueMemberSS:
		size := 0
		for _, e := range v.Value {
			size += len(e)
		}
		return size
	case *types.AttributeValueMemberNS:
		size := 0
		for _, e := range v.Value {
			size += parsed(e).Size()
		}
		return size
	case *types.AttributeValueMemberBS:
		size := 0
		for _, e := range v.Value {
			size += len(e)
		}
		return size
	default:
		return 0
	}
}
