package projection

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Row holds the attributes of an item of a read model, without those of [Rows], whose names begin
// with "millrace_". It can be passed to functions that decode items, such as
// attributevalue.UnmarshalMap of the SDK.
type Row map[string]types.AttributeValue

// Text returns an attribute of type string, and "" if the row has none of that name and type.
func (r Row) Text(attribute string) string {
	if s, ok := r[attribute].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Number returns an attribute that is a whole number, and 0 if the row has none of that name and
// type.
func (r Row) Number(attribute string) int64 {
	if n, ok := r[attribute].(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}

// Text returns a string as an attribute.
func Text[S ~string](s S) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(s)}
}

// Number returns a whole number as an attribute.
func Number[N ~int | ~int32 | ~int64 | ~uint32 | ~uint64](n N) types.AttributeValue {
	if n < 0 {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(uint64(n), 10)}
}
