package dynamotest

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// reportCapacity puts the consumed capacity of a call into its output if its input requests this.
func reportCapacity(in, out any, cost *engine.Cost) {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		out.(*dynamodb.GetItemOutput).ConsumedCapacity = consumedByOne(in.ReturnConsumedCapacity, cost)
	case *dynamodb.PutItemInput:
		out.(*dynamodb.PutItemOutput).ConsumedCapacity = consumedByOne(in.ReturnConsumedCapacity, cost)
	case *dynamodb.UpdateItemInput:
		out.(*dynamodb.UpdateItemOutput).ConsumedCapacity = consumedByOne(in.ReturnConsumedCapacity, cost)
	case *dynamodb.DeleteItemInput:
		out.(*dynamodb.DeleteItemOutput).ConsumedCapacity = consumedByOne(in.ReturnConsumedCapacity, cost)
	case *dynamodb.QueryInput:
		out.(*dynamodb.QueryOutput).ConsumedCapacity = consumedByOne(in.ReturnConsumedCapacity, cost)
	case *dynamodb.ScanInput:
		out.(*dynamodb.ScanOutput).ConsumedCapacity = consumedByOne(in.ReturnConsumedCapacity, cost)
	case *dynamodb.BatchGetItemInput:
		out.(*dynamodb.BatchGetItemOutput).ConsumedCapacity = consumed(in.ReturnConsumedCapacity, cost)
	case *dynamodb.BatchWriteItemInput:
		out.(*dynamodb.BatchWriteItemOutput).ConsumedCapacity = consumed(in.ReturnConsumedCapacity, cost)
	case *dynamodb.TransactGetItemsInput:
		out.(*dynamodb.TransactGetItemsOutput).ConsumedCapacity = inTransaction(consumed(in.ReturnConsumedCapacity, cost), false)
	case *dynamodb.TransactWriteItemsInput:
		// A transaction that repeats an earlier one only reads.
		_, written := cost.Totals()
		out.(*dynamodb.TransactWriteItemsOutput).ConsumedCapacity = inTransaction(consumed(in.ReturnConsumedCapacity, cost), written > 0)
	}
}

func consumedByOne(asked types.ReturnConsumedCapacity, cost *engine.Cost) *types.ConsumedCapacity {
	for _, one := range consumed(asked, cost) {
		return &one
	}
	return nil
}

// consumed returns an entry for each table: a total, or with INDEXES separate entries for indexes.
func consumed(asked types.ReturnConsumedCapacity, cost *engine.Cost) []types.ConsumedCapacity {
	if asked != types.ReturnConsumedCapacityTotal && asked != types.ReturnConsumedCapacityIndexes {
		return nil
	}
	var all []types.ConsumedCapacity
	entry := func(table string) *types.ConsumedCapacity {
		for i := range all {
			if *all[i].TableName == table {
				return &all[i]
			}
		}
		all = append(all, types.ConsumedCapacity{TableName: &table, CapacityUnits: new(float64)})
		e := &all[len(all)-1]
		if asked == types.ReturnConsumedCapacityIndexes {
			e.Table = &types.Capacity{CapacityUnits: new(float64)} // also if only an index was used
		}
		return e
	}
	for _, charge := range cost.Charges {
		e, units := entry(charge.Table), charge.Read+charge.Write
		*e.CapacityUnits += units
		if asked != types.ReturnConsumedCapacityIndexes {
			continue
		}
		one := types.Capacity{CapacityUnits: &units}
		switch {
		case charge.Index == "":
			e.Table = &one
		case charge.Global:
			if e.GlobalSecondaryIndexes == nil {
				e.GlobalSecondaryIndexes = map[string]types.Capacity{}
			}
			e.GlobalSecondaryIndexes[charge.Index] = one
		default:
			if e.LocalSecondaryIndexes == nil {
				e.LocalSecondaryIndexes = map[string]types.Capacity{}
			}
			e.LocalSecondaryIndexes[charge.Index] = one
		}
	}
	return all
}

// inTransaction marks the units of a transaction as read or write units.
func inTransaction(all []types.ConsumedCapacity, writes bool) []types.ConsumedCapacity {
	say := func(units *float64, read, write **float64) {
		if writes {
			*write = units
		} else {
			*read = units
		}
	}
	sayAll := func(indexes map[string]types.Capacity) {
		for name, c := range indexes {
			say(c.CapacityUnits, &c.ReadCapacityUnits, &c.WriteCapacityUnits)
			indexes[name] = c
		}
	}
	for i := range all {
		e := &all[i]
		say(e.CapacityUnits, &e.ReadCapacityUnits, &e.WriteCapacityUnits)
		if e.Table != nil {
			say(e.Table.CapacityUnits, &e.Table.ReadCapacityUnits, &e.Table.WriteCapacityUnits)
		}
		sayAll(e.GlobalSecondaryIndexes)
		sayAll(e.LocalSecondaryIndexes)
	}
	return all
}
