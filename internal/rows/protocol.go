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

// protocol is the protocol of the SDK, except that it decodes the items of a reply into rows.
type protocol struct {
	smithyhttp.ClientProtocol
	// begin discards the rows of an earlier attempt, which failed.
	begin func()
	// take is called with each row. The row is valid until take returns.
	take func(Row)

	row  Row  // the last row
	read bool // false if the items are in the SDK's output
}

// DeserializeResponse lets the SDK's protocol decode a reply into a pageOutput or a batchOutput.
func (p *protocol) DeserializeResponse(
	ctx context.Context, operation *smithy.OperationSchema, registry *smithy.TypeRegistry, reply *smithyhttp.Response, into smithy.Deserializable,
) error {
	p.read, p.row = false, nil
	p.begin()
	switch out := into.(type) {
	case *dynamodb.QueryOutput:
		// An earlier attempt that failed may have set some fields.
		*out = dynamodb.QueryOutput{ResultMetadata: out.ResultMetadata}
		into, p.read = &pageOutput{out, p}, true
	case *dynamodb.BatchGetItemOutput:
		*out = dynamodb.BatchGetItemOutput{ResultMetadata: out.ResultMetadata}
		into, p.read = &batchOutput{out, p}, true
	}
	return p.ClientProtocol.DeserializeResponse(ctx, operation, registry, reply, into)
}

// pageOutput decodes the reply to a Query: the items into rows, the rest as the SDK does.
type pageOutput struct {
	*dynamodb.QueryOutput
	protocol *protocol
}

func (o *pageOutput) Deserialize(d smithy.ShapeDeserializer) error {
	return smithy.ReadStruct(d, schemas.QueryOutput, func(member *smithy.Schema) error {
		switch member {
		case schemas.QueryOutput_Items:
			return o.protocol.readItems(d, member)
		case schemas.QueryOutput_LastEvaluatedKey:
			key, err := readRow(d, member, nil)
			o.LastEvaluatedKey = key.Item()
			return err
		case schemas.QueryOutput_Count:
			return d.ReadInt32(member, &o.Count)
		case schemas.QueryOutput_ScannedCount:
			return d.ReadInt32(member, &o.ScannedCount)
		case schemas.QueryOutput_ConsumedCapacity:
			o.ConsumedCapacity = &types.ConsumedCapacity{}
			return o.ConsumedCapacity.Deserialize(d)
		default:
			return skip(d, member)
		}
	})
}

// batchOutput decodes the reply to a BatchGetItem: the items of all tables into rows, the rest as
// the SDK does.
type batchOutput struct {
	*dynamodb.BatchGetItemOutput
	protocol *protocol
}

func (o *batchOutput) Deserialize(d smithy.ShapeDeserializer) error {
	return smithy.ReadStruct(d, schemas.BatchGetItemOutput, func(member *smithy.Schema) error {
		switch member {
		case schemas.BatchGetItemOutput_Responses:
			return smithy.ReadMap(d, member, func(string) error { return o.protocol.readItems(d, member.MapValue()) })
		case schemas.BatchGetItemOutput_UnprocessedKeys:
			o.UnprocessedKeys = map[string]types.KeysAndAttributes{}
			return smithy.ReadMap(d, member, func(table string) error {
				var keys types.KeysAndAttributes
				err := keys.Deserialize(d)
				o.UnprocessedKeys[table] = keys
				return err
			})
		case schemas.BatchGetItemOutput_ConsumedCapacity:
			o.ConsumedCapacity = []types.ConsumedCapacity{}
			return smithy.ReadList(d, member, func() error {
				var consumed types.ConsumedCapacity
				err := consumed.Deserialize(d)
				o.ConsumedCapacity = append(o.ConsumedCapacity, consumed)
				return err
			})
		default:
			return skip(d, member)
		}
	})
}

func (p *protocol) readItems(d smithy.ShapeDeserializer, list *smithy.Schema) error {
	return smithy.ReadList(d, list, func() (err error) {
		if p.row, err = readRow(d, list.ListMember(), p.row[:0]); err == nil {
			p.take(p.row)
		}
		return err
	})
}

// readRow decodes an item, or a key, into the memory of a row.
func readRow(d smithy.ShapeDeserializer, schema *smithy.Schema, row Row) (Row, error) {
	err := smithy.ReadMap(d, schema, func(name string) error {
		return smithy.ReadUnion(d, schema.MapValue(), func(kind *smithy.Schema) (err error) {
			row = append(row, Attribute{Name: name})
			a := &row[len(row)-1]
			switch kind {
			case schemas.AttributeValue_S:
				a.Kind = Text
				return d.ReadString(kind, &a.Text)
			case schemas.AttributeValue_N:
				a.Kind = Number
				return d.ReadString(kind, &a.Text)
			case schemas.AttributeValue_B:
				a.Kind = Binary
				return d.ReadBlob(kind, &a.Binary)
			}
			a.Other, err = readOther(d, kind)
			return err
		})
	})
	return row, err
}

// readOther decodes a value of another kind as the SDK does.
func readOther(d smithy.ShapeDeserializer, kind *smithy.Schema) (types.AttributeValue, error) {
	var value interface {
		types.AttributeValue
		smithy.Deserializable
	}
	switch kind {
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
