package units

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// asking returns a shallow copy of an input that also asks for the consumed capacity.
func asking[In any](in *In) *In {
	asks := *in
	var asked *types.ReturnConsumedCapacity
	switch in := any(&asks).(type) {
	case *dynamodb.GetItemInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.PutItemInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.UpdateItemInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.DeleteItemInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.BatchGetItemInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.BatchWriteItemInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.QueryInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.ScanInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.TransactGetItemsInput:
		asked = &in.ReturnConsumedCapacity
	case *dynamodb.TransactWriteItemsInput:
		asked = &in.ReturnConsumedCapacity
	}
	if asked != nil && (*asked == "" || *asked == types.ReturnConsumedCapacityNone) {
		*asked = types.ReturnConsumedCapacityTotal
	}
	return &asks
}

// Consumed returns the units that a reply reports.
func Consumed(out any) (read, write float64) {
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		return sum(false, out.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		return sum(false, out.ConsumedCapacity)
	case *dynamodb.ScanOutput:
		return sum(false, out.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		return sumAll(false, out.ConsumedCapacity)
	case *dynamodb.TransactGetItemsOutput:
		return sumAll(false, out.ConsumedCapacity)
	case *dynamodb.PutItemOutput:
		return sum(true, out.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		return sum(true, out.ConsumedCapacity)
	case *dynamodb.DeleteItemOutput:
		return sum(true, out.ConsumedCapacity)
	case *dynamodb.BatchWriteItemOutput:
		return sumAll(true, out.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		return sumAll(true, out.ConsumedCapacity)
	}
	return 0, 0
}

// sum returns the units of one table. DynamoDB reports reads and writes separately for a
// transaction, because a TransactWriteItems that repeats an earlier one consumes read units.
// Otherwise it reports only CapacityUnits.
func sum(writes bool, c *types.ConsumedCapacity) (read, write float64) {
	switch {
	case c == nil:
		return 0, 0
	case c.ReadCapacityUnits != nil || c.WriteCapacityUnits != nil:
		return aws.ToFloat64(c.ReadCapacityUnits), aws.ToFloat64(c.WriteCapacityUnits)
	case writes:
		return 0, aws.ToFloat64(c.CapacityUnits)
	}
	return aws.ToFloat64(c.CapacityUnits), 0
}

func sumAll(writes bool, tables []types.ConsumedCapacity) (read, write float64) {
	for i := range tables {
		r, w := sum(writes, &tables[i])
		read, write = read+r, write+w
	}
	return read, write
}
