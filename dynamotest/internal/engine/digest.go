package engine

import (
	"hash/maphash"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

var digestSeed = maphash.MakeSeed()

// digest is a hash of the content of a transaction. It does not depend on unspecified orders.
type digest uint64

func digestOf(actions []types.TransactWriteItem) uint64 {
	var d digest
	for _, action := range actions {
		switch {
		case action.Put != nil:
			a := action.Put
			d.texts("put", aws.ToString(a.TableName), aws.ToString(a.ConditionExpression), string(a.ReturnValuesOnConditionCheckFailure))
			d.item(a.Item)
			d.placeholders(a.ExpressionAttributeNames, a.ExpressionAttributeValues)
		case action.Update != nil:
			a := action.Update
			d.texts("update", aws.ToString(a.TableName), aws.ToString(a.UpdateExpression), aws.ToString(a.ConditionExpression),
				string(a.ReturnValuesOnConditionCheckFailure))
			d.item(a.Key)
			d.placeholders(a.ExpressionAttributeNames, a.ExpressionAttributeValues)
		case action.Delete != nil:
			a := action.Delete
			d.texts("delete", aws.ToString(a.TableName), aws.ToString(a.ConditionExpression), string(a.ReturnValuesOnConditionCheckFailure))
			d.item(a.Key)
			d.placeholders(a.ExpressionAttributeNames, a.ExpressionAttributeValues)
		case action.ConditionCheck != nil:
			a := action.ConditionCheck
			d.texts("check", aws.ToString(a.TableName), aws.ToString(a.ConditionExpression), string(a.ReturnValuesOnConditionCheckFailure))
			d.item(a.Key)
			d.placeholders(a.ExpressionAttributeNames, a.ExpressionAttributeValues)
		}
	}
	return uint64(d)
}

func (d *digest) placeholders(names map[string]string, values value.Item) {
	var sum digest
	for name, of := range names {
		var one digest
		one.texts(name, of)
		sum += one
	}
	d.number(uint64(sum))
	d.item(values)
}

func (d *digest) item(item value.Item) {
	var sum digest
	for name, v := range item {
		var one digest
		one.texts(name)
		one.value(v)
		sum += one
	}
	d.number(uint64(len(item)))
	d.number(uint64(sum))
}

func (d *digest) value(v types.AttributeValue) {
	d.texts(value.Type(v))
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		d.texts(v.Value)
	case *types.AttributeValueMemberN:
		d.texts(v.Value)
	case *types.AttributeValueMemberB:
		d.bytes(v.Value)
	case *types.AttributeValueMemberBOOL:
		if v.Value {
			d.number(1)
		}
	case *types.AttributeValueMemberSS:
		d.set(v.Value)
	case *types.AttributeValueMemberNS:
		d.set(v.Value)
	case *types.AttributeValueMemberBS:
		var sum digest
		for _, b := range v.Value {
			var one digest
			one.bytes(b)
			sum += one
		}
		d.number(uint64(len(v.Value)))
		d.number(uint64(sum))
	case *types.AttributeValueMemberL:
		d.number(uint64(len(v.Value)))
		for _, e := range v.Value {
			d.value(e)
		}
	case *types.AttributeValueMemberM:
		d.item(v.Value)
	}
}

func (d *digest) set(members []string) {
	var sum digest
	for _, m := range members {
		var one digest
		one.texts(m)
		sum += one
	}
	d.number(uint64(len(members)))
	d.number(uint64(sum))
}

func (d *digest) texts(texts ...string) {
	for _, t := range texts {
		d.number(maphash.String(digestSeed, t))
	}
}

func (d *digest) bytes(b []byte) { d.number(maphash.Bytes(digestSeed, b)) }

// number mixes a number in. The factor is that of Fibonacci hashing.
func (d *digest) number(n uint64) {
	*d = digest(bits.RotateLeft64(uint64(*d)^n, 23) * 0x9e3779b97f4a7c15)
}
