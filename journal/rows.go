package journal

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/document"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// eventRows reads the reply to a query as rows. The SDK makes a map for each item and a value for each attribute of it,
// which is most of what reading a history costs a process. Its own parser is used, through the interfaces that it has for
// that. A client that is not the SDK's own, but for example one that looks into replies, gets and gives them as they are.
type eventRows struct {
	smithyhttp.ClientProtocol
	attributes Attributes

	begin func()          // of a reply; that of an earlier attempt does not count
	take  func(*eventRow) // valid until take returns

	out  *dynamodb.QueryOutput
	last eventRow
	read bool // otherwise the items are in the reply
}

// query reads one page.
func (e *eventRows) query(ctx context.Context, client Client, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	var options []func(*dynamodb.Options)
	if _, own := client.(*dynamodb.Client); own {
		options = append(options, func(o *dynamodb.Options) {
			if o.Protocol != nil {
				e.ClientProtocol, o.Protocol = o.Protocol, e
			}
		})
	}
	out, err := client.Query(ctx, in, options...)
	if err == nil {
		e.finish(out)
	}
	return out, err
}

// finish takes the items of a reply that was not read as rows.
func (e *eventRows) finish(out *dynamodb.QueryOutput) {
	if e.read {
		return
	}
	e.begin()
	for _, it := range out.Items {
		e.last = eventRow{other: it}
		e.take(&e.last)
	}
}

// DeserializeResponse has the reply read by Deserialize.
func (e *eventRows) DeserializeResponse(
	ctx context.Context, operation *smithy.OperationSchema, registry *smithy.TypeRegistry, reply *smithyhttp.Response, into smithy.Deserializable,
) error {
	if out, ok := into.(*dynamodb.QueryOutput); ok {
		e.out, into = out, e
	}
	return e.ClientProtocol.DeserializeResponse(ctx, operation, registry, reply, into)
}

// Deserialize reads a reply.
func (e *eventRows) Deserialize(d smithy.ShapeDeserializer) error {
	e.read = true
	e.begin()
	return smithy.ReadStruct(d, schemas.QueryOutput, func(member *smithy.Schema) error {
		switch member {
		case schemas.QueryOutput_Items:
			return smithy.ReadList(d, member, func() error {
				e.last = eventRow{}
				if err := e.readRow(d, member.ListMember(), &e.last); err != nil {
					return err
				}
				e.take(&e.last)
				return nil
			})
		case schemas.QueryOutput_LastEvaluatedKey:
			e.out.LastEvaluatedKey = item{}
			return smithy.ReadMap(d, member, func(name string) error {
				return smithy.ReadUnion(d, member.MapValue(), func(kind *smithy.Schema) (err error) {
					e.out.LastEvaluatedKey[name], err = readValue(d, kind)
					return err
				})
			})
		default:
			return skip(d, member)
		}
	})
}

func (e *eventRows) readRow(d smithy.ShapeDeserializer, schema *smithy.Schema, r *eventRow) error {
	return smithy.ReadMap(d, schema, func(name string) error {
		return smithy.ReadUnion(d, schema.MapValue(), func(kind *smithy.Schema) error {
			switch field := e.field(r, name, kind); {
			case field != nil:
				return d.ReadString(kind, field)
			case name == e.attributes.Payload && kind == schemas.AttributeValue_B:
				r.hasPayload = true
				return r.payload.Deserialize(d)
			case name == attrMetadata && kind == schemas.AttributeValue_M:
				r.metadata = &types.AttributeValueMemberM{}
				return r.metadata.Deserialize(d)
			}
			value, err := readValue(d, kind)
			if r.other == nil {
				r.other = item{}
			}
			r.other[name] = value
			return err
		})
	})
}

// field is where a text or number belongs, nil for what has no place.
func (e *eventRows) field(r *eventRow, name string, kind *smithy.Schema) *string {
	switch kind {
	case schemas.AttributeValue_S:
		switch name {
		case e.attributes.PartitionKey:
			return &r.partition
		case e.attributes.SortKey:
			return &r.sort
		case e.attributes.AggregateID:
			return &r.aggregate
		case attrEventID:
			return &r.eventID
		case attrEventType:
			return &r.eventType
		case attrCommitID:
			return &r.commitID
		case attrEncoding:
			return &r.encoding
		}
	case schemas.AttributeValue_N:
		switch name {
		case e.attributes.SequenceNumber:
			return &r.number
		case e.attributes.OccurredAt:
			return &r.occurredAt
		}
	}
	return nil
}

// readValue gives nil for a kind that no attribute of an event has.
func readValue(d smithy.ShapeDeserializer, kind *smithy.Schema) (types.AttributeValue, error) {
	switch kind {
	case schemas.AttributeValue_S:
		v := &types.AttributeValueMemberS{}
		return v, v.Deserialize(d)
	case schemas.AttributeValue_N:
		v := &types.AttributeValueMemberN{}
		return v, v.Deserialize(d)
	case schemas.AttributeValue_B:
		v := &types.AttributeValueMemberB{}
		return v, v.Deserialize(d)
	default:
		return nil, skip(d, kind)
	}
}

func skip(d smithy.ShapeDeserializer, schema *smithy.Schema) error {
	var ignored document.Value
	return d.ReadDocument(schema, &ignored)
}
