package rows

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// Row is an item: its attributes, in the order in which they came.
type Row []Attribute

// Attribute is an attribute of an item. The SDK makes a value on the heap of each.
type Attribute struct {
	Name   string
	Kind   Kind
	Text   string // of a text, or of a number as DynamoDB writes it
	Binary []byte
	Other  types.AttributeValue // of another kind
}

// Kind says which field of an attribute has its value.
type Kind byte

const (
	Other Kind = iota
	Text
	Number
	Binary
)

// Of makes a row of an item that the SDK has read.
func Of(it map[string]types.AttributeValue) Row {
	row := make(Row, 0, len(it))
	for name, value := range it {
		a := Attribute{Name: name}
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			a.Kind, a.Text = Text, v.Value
		case *types.AttributeValueMemberN:
			a.Kind, a.Text = Number, v.Value
		case *types.AttributeValueMemberB:
			a.Kind, a.Binary = Binary, v.Value
		default:
			a.Other = value
		}
		row = append(row, a)
	}
	return row
}

// Item returns the row as the SDK would have read it.
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
