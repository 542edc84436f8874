package rows

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/document"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// protocol is the SDK's, except that the reader gets the items of a reply to a query.
type protocol struct {
	smithyhttp.ClientProtocol
	reader *Reader
	out    *dynamodb.QueryOutput
	read   bool // otherwise the items are in out
}

// DeserializeResponse makes the SDK's protocol call Deserialize for a reply to a query.
func (p *protocol) DeserializeResponse(
	ctx context.Context, operation *smithy.OperationSchema, registry *smithy.TypeRegistry, reply *smithyhttp.Response, into smithy.Deserializable,
) error {
	if out, ok := into.(*dynamodb.QueryOutput); ok {
		p.out, into = out, p
	}
	return p.ClientProtocol.DeserializeResponse(ctx, operation, registry, reply, into)
}

// Deserialize reads a reply: its items and its last key.
func (p *protocol) Deserialize(d smithy.ShapeDeserializer) error {
	r := p.reader
	p.read = true
	r.Begin()
	return smithy.ReadStruct(d, schemas.QueryOutput, func(member *smithy.Schema) error {
		switch member {
		case schemas.QueryOutput_Items:
			return smithy.ReadList(d, member, func() error {
				r.last = Row{}
				if err := r.readRow(d, member.ListMember(), &r.last); err != nil {
					return err
				}
				r.Take(&r.last)
				return nil
			})
		case schemas.QueryOutput_LastEvaluatedKey:
			p.out.LastEvaluatedKey = item{}
			return smithy.ReadMap(d, member, func(name string) error {
				return smithy.ReadUnion(d, member.MapValue(), func(kind *smithy.Schema) (err error) {
					p.out.LastEvaluatedKey[name], err = readValue(d, kind)
					return err
				})
			})
		default:
			return skip(d, member)
		}
	})
}

func (r *Reader) readRow(d smithy.ShapeDeserializer, schema *smithy.Schema, row *Row) error {
	return smithy.ReadMap(d, schema, func(name string) error {
		return smithy.ReadUnion(d, schema.MapValue(), func(kind *smithy.Schema) error {
			var field *string
			switch kind {
			case schemas.AttributeValue_S:
				field = r.Names.text(row, name)
			case schemas.AttributeValue_N:
				field = r.Names.number(row, name)
			case schemas.AttributeValue_B:
				if name == r.Names.Payload {
					row.HasPayload = true
					return d.ReadBlob(kind, &row.Payload)
				}
			case schemas.AttributeValue_M:
				if name == r.Names.Metadata {
					row.Metadata = &types.AttributeValueMemberM{}
					return row.Metadata.Deserialize(d)
				}
			}
			var value types.AttributeValue
			var err error
			if field == nil {
				value, err = readValue(d, kind)
			} else if err = d.ReadString(kind, field); err != nil || *field != "" {
				return err
			} else {
				value = &types.AttributeValueMemberS{} // which an empty field would not show
			}
			if row.Other == nil {
				row.Other = item{}
			}
			row.Other[name] = value
			return err
		})
	})
}

// readValue reads what has no field, as the SDK does.
func readValue(d smithy.ShapeDeserializer, kind *smithy.Schema) (types.AttributeValue, error) {
	var value interface {
		types.AttributeValue
		smithy.Deserializable
	}
	switch kind {
	case schemas.AttributeValue_S:
		value = &types.AttributeValueMemberS{}
	case schemas.AttributeValue_N:
		value = &types.AttributeValueMemberN{}
	case schemas.AttributeValue_B:
		value = &types.AttributeValueMemberB{}
	case schemas.AttributeValue_M:
		value = &types.AttributeValueMemberM{}
	case schemas.AttributeValue_L:
		value = &types.AttributeValueMemberL{}
	case schemas.AttributeValue_SS:
		value = &types.AttributeValueMemberSS{}
	case schemas.AttributeValue_NS:
		value = &types.AttributeValueMemberNS{}
	case schemas.AttributeValue_BS:
		value = &types.AttributeValueMemberBS{}
	case schemas.AttributeValue_BOOL:
		value = &types.AttributeValueMemberBOOL{}
	case schemas.AttributeValue_NULL:
		value = &types.AttributeValueMemberNULL{}
	default:
		return nil, skip(d, kind)
	}
	return value, value.Deserialize(d)
}

func skip(d smithy.ShapeDeserializer, schema *smithy.Schema) error {
	var ignored document.Value
	return d.ReadDocument(schema, &ignored)
}
