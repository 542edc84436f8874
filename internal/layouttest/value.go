package layouttest

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// Value returns an attribute of any kind.
func Value(kind byte, text string) types.AttributeValue {
	switch kind % 8 {
	case 0:
		return &types.AttributeValueMemberS{Value: text}
	case 1:
		return &types.AttributeValueMemberN{Value: text}
	case 2:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	case 3:
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{text: &types.AttributeValueMemberS{Value: text}}}
	case 4:
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{text: &types.AttributeValueMemberNULL{Value: true}}}
	case 5:
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{nil}}
	case 6:
		return &types.AttributeValueMemberB{}
	default:
		return nil
	}
}
