package rows

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// Row holds the attributes of an item in the order in which they came.
type Row []Attribute

// Attribute is an attribute of an item. The SDK would allocate a value for each.
type Attribute struct {
	Name   string
	Kind   Kind
	Text   string // the value of a string, or of a number in DynamoDB's notation
	Binary []byte
	Other  types.AttributeValue // the value of an attribute of another kind
}

// Kind says which field of an attribute holds its value.
type Kind byte

// Strings and numbers are in Attribute.Text, binary values in Attribute.Binary, and all other
// values in Attribute.Other.
const (
	Other Kind = iota
	Text
	Number
	Binary
)

// Of converts an item that the SDK has decoded into a row.
func Of(it map[string]types.AttributeValue) Row {
	row := make(Row, 0, len(it))
	for name, value := range it {
		row = append(row, AttributeOf(name, value))
	}
	return row
}

// AttributeOf converts one attribute that the SDK has decoded.
func AttributeOf(name string, value types.AttributeValue) Attribute {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return Attribute{Name: name, Kind: Text, Text: v.Value}
	case *types.AttributeValueMemberN:
		return Attribute{Name: name, Kind: Number, Text: v.Value}
	case *types.AttributeValueMemberB:
		return Attribute{Name: name, Kind: Binary, Binary: v.Value}
	default:
		return Attribute{Name: name, Other: value}
	}
}

// Item returns the row as the map that the SDK would have returned.
func (r Row) Item() map[string]types.AttributeValue {
	it := make(map[string]types.AttributeValue, len(r))
	for i := range r {
		it[r[i].Name] = r[i].value()
	}
	return it
}

func (a *Attribute) value() types.AttributeValue {
	switch a.Kind {
	case Text:
		return &types.AttributeValueMemberS{Value: a.Text}
	case Number:
		return &types.AttributeValueMemberN{Value: a.Text}
	case Binary:
		return &types.AttributeValueMemberB{Value: a.Binary}
	default:
		return a.Other
	}
}
