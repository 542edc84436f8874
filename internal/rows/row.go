package rows

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

// Names are the names of the attributes of an event.
type Names struct {
	Partition, Sort, Aggregate             string // keys, and the id
	Number, OccurredAt                     string
	EventID, EventType, CommitID, Encoding string
	Payload, Metadata                      string
}

// Row is an event's item with its attributes in fields. A field is empty if the item has no such
// attribute, and also if the attribute has another type than it should have or is an empty text:
// then it is in Other, as are all attributes without a field.
type Row struct {
	Partition, Sort, Aggregate             string
	Number, OccurredAt                     string // numbers, as DynamoDB writes them
	EventID, EventType, CommitID, Encoding string
	Payload                                []byte
	HasPayload                             bool
	Metadata                               *types.AttributeValueMemberM
	Other                                  map[string]types.AttributeValue

	whole bool // Other is the whole item
}

// Item returns the row as the SDK would have read it.
func (n *Names) Item(r *Row) map[string]types.AttributeValue {
	if r.whole {
		return r.Other
	}
	it := make(item, 12)
	texts := [...]struct{ name, value string }{
		{n.Partition, r.Partition},
		{n.Sort, r.Sort},
		{n.Aggregate, r.Aggregate},
		{n.EventID, r.EventID},
		{n.EventType, r.EventType},
		{n.CommitID, r.CommitID},
		{n.Encoding, r.Encoding},
	}
	for _, t := range texts {
		if t.value != "" {
			it[t.name] = &types.AttributeValueMemberS{Value: t.value}
		}
	}
	if r.Number != "" {
		it[n.Number] = &types.AttributeValueMemberN{Value: r.Number}
	}
	if r.OccurredAt != "" {
		it[n.OccurredAt] = &types.AttributeValueMemberN{Value: r.OccurredAt}
	}
	if r.HasPayload {
		it[n.Payload] = &types.AttributeValueMemberB{Value: r.Payload}
	}
	if r.Metadata != nil {
		it[n.Metadata] = r.Metadata
	}
	maps.Copy(it, r.Other)
	return it
}

// text returns the field for an attribute that is a text, nil if there is none.
func (n *Names) text(r *Row, name string) *string {
	switch name {
	case n.Partition:
		return &r.Partition
	case n.Sort:
		return &r.Sort
	case n.Aggregate:
		return &r.Aggregate
	case n.EventID:
		return &r.EventID
	case n.EventType:
		return &r.EventType
	case n.CommitID:
		return &r.CommitID
	case n.Encoding:
		return &r.Encoding
	}
	return nil
}

// number returns the field for an attribute that is a number, nil if there is none.
func (n *Names) number(r *Row, name string) *string {
	switch name {
	case n.Number:
		return &r.Number
	case n.OccurredAt:
		return &r.OccurredAt
	}
	return nil
}
