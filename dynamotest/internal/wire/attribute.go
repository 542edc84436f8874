package wire

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// item reads a map of attribute values.
func (r *reader) item() map[string]types.AttributeValue {
	if r.peek() != '{' {
		r.mismatch("")
		return nil
	}
	item := map[string]types.AttributeValue{}
	for r.open(); r.more('}'); {
		name := string(r.key())
		item[name] = r.attributeValue()
	}
	return item
}

// attributeValue reads an object whose only key is the type. It returns nil if there is no type.
func (r *reader) attributeValue() types.AttributeValue {
	if r.null() {
		return nil
	}
	if r.peek() != '{' {
		r.mismatch("")
		return nil
	}
	var v types.AttributeValue
	for r.open(); r.more('}'); {
		kind := r.key()
		if r.null() { // a type that is null is not set
			continue
		}
		member := r.member(kind)
		if v != nil && value.Type(v) != value.Type(member) {
			r.refuse("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
		}
		v = member
	}
	return v
}

// member reads the member of an attribute value with the name of a type.
func (r *reader) member(kind []byte) types.AttributeValue {
	switch string(kind) {
	case "S":
		return &types.AttributeValueMemberS{Value: r.string()}
	case "N":
		return &types.AttributeValueMemberN{Value: r.string()}
	case "B":
		return &types.AttributeValueMemberB{Value: r.binary()}
	case "BOOL":
		return &types.AttributeValueMemberBOOL{Value: r.bool("Boolean")}
	case "NULL":
		return &types.AttributeValueMemberNULL{Value: r.bool("Boolean")}
	case "L":
		return &types.AttributeValueMemberL{Value: r.attributeValues()}
	case "M":
		return &types.AttributeValueMemberM{Value: r.item()}
	case "SS":
		return &types.AttributeValueMemberSS{Value: members(r, "string", (*reader).string)}
	case "NS":
		return &types.AttributeValueMemberNS{Value: members(r, "number", (*reader).string)}
	case "BS":
		return &types.AttributeValueMemberBS{Value: members(r, "binary", (*reader).binary)}
	default:
		r.unknown(kind, "AttributeValue")
		return nil
	}
}

func (r *reader) attributeValues() []types.AttributeValue {
	if r.peek() != '[' {
		r.mismatch("")
		return nil
	}
	values := []types.AttributeValue{}
	for r.open(); r.more(']'); {
		values = append(values, r.attributeValue())
	}
	return values
}

// members reads the members of a set.
func members[E any](r *reader, kind string, member func(*reader) E) []E {
	if r.peek() != '[' {
		r.mismatch("")
		return nil
	}
	values := []E{}
	for r.open(); r.more(']'); {
		if r.null() {
			r.refuse("One or more parameter values were invalid: An %[1]s set may not have a null %[1]s as a member", kind)
			continue
		}
		values = append(values, member(r))
	}
	return values
}
