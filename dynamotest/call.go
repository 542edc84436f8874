package dynamotest

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// Call describes one request to the database and its result. Each attempt of the SDK is a call.
type Call struct {
	Operation string   // its name, such as "Query"
	Tables    []string // the tables that the request names, in order
	Index     string   // the index that the request reads; empty for none
	Items     int      // number of items returned or written
	Scanned   int      // number of items that Query and Scan read, before the filter

	// Capacity units by the published rules of AWS: the totals, and in Capacity the units of each
	// table and index. A condition that fails also consumes units.
	ReadUnits  float64
	WriteUnits float64    // the write units that the call consumed
	Capacity   []Capacity // the units of each table and index

	RequestBytes int // size of the JSON body of the request
	ReplyBytes   int // size of the JSON body of the reply

	// Err is the error that the client receives. It has an SDK type, such as
	// *types.ConditionalCheckFailedException, and must not be changed.
	Err error
	// Faults are the faults that happened to the call, by the names of the functions that make
	// them.
	Faults []string

	// Exhausted lists the partitions that had too few units left for the call or a part of it; see
	// [WithPartitionLimits].
	Exhausted []Partition

	// Late means that the request reached the database after its client had given up; see [Late].
	// The client's attempt is a separate call, with the error that the client received.
	Late bool
}

// Partition identifies the items of a table, or of a global index, that have the same partition
// key.
type Partition struct {
	Table string               // the table
	Index string               // empty for the table
	Key   types.AttributeValue // the partition key, as text
}

// Capacity is the number of units that a call consumed of a table or of an index.
type Capacity struct {
	Table      string  // the table
	Index      string  // empty for the table
	ReadUnits  float64 // the read units of the table or index
	WriteUnits float64 // the write units of the table or index
}

func (c *Call) note(p *plan) {
	c.Faults = p.happened()
	for _, touch := range p.touches {
		if !slices.Contains(c.Tables, touch.Table) {
			c.Tables = append(c.Tables, touch.Table)
		}
		c.Index = touch.Index
	}
}

func (c *Call) charge(cost *engine.Cost) {
	c.Items, c.Scanned = cost.Returned+cost.Written, cost.Scanned
	c.ReadUnits, c.WriteUnits = cost.Totals()
	for _, partition := range cost.Exhausted {
		c.Exhausted = append(c.Exhausted, Partition(partition))
	}
	for _, charge := range cost.Charges {
		c.Capacity = append(c.Capacity, Capacity{
			Table: charge.Table, Index: charge.Index, ReadUnits: charge.Read, WriteUnits: charge.Write,
		})
	}
}

// read fills a call with the information in a reply through a [Proxy].
func (c *Call) read(in, out any) {
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		if out.Item != nil {
			c.Items = 1
		}
		c.consumed(out.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		c.Items, c.Scanned = int(out.Count), int(out.ScannedCount)
		c.consumed(out.ConsumedCapacity)
	case *dynamodb.ScanOutput:
		c.Items, c.Scanned = int(out.Count), int(out.ScannedCount)
		c.consumed(out.ConsumedCapacity)
	case *dynamodb.PutItemOutput:
		c.Items = 1
		c.consumed(out.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		c.Items = 1
		c.consumed(out.ConsumedCapacity)
	case *dynamodb.DeleteItemOutput:
		c.Items = 1
		c.consumed(out.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		for _, items := range out.Responses {
			c.Items += len(items)
		}
		c.consumedAll(out.ConsumedCapacity)
	case *dynamodb.BatchWriteItemOutput:
		for table, asked := range in.(*dynamodb.BatchWriteItemInput).RequestItems { //nolint:forcetypeassert // same operation
			c.Items += len(asked) - len(out.UnprocessedItems[table])
		}
		c.consumedAll(out.ConsumedCapacity)
	case *dynamodb.TransactGetItemsOutput:
		for _, response := range out.Responses {
			if response.Item != nil {
				c.Items++
			}
		}
		c.consumedAll(out.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		for _, action := range in.(*dynamodb.TransactWriteItemsInput).TransactItems { //nolint:forcetypeassert // same operation
			if action.ConditionCheck == nil {
				c.Items++
			}
		}
		c.consumedAll(out.ConsumedCapacity)
	}
}

func (c *Call) consumedAll(all []types.ConsumedCapacity) {
	for _, one := range all {
		c.consumed(&one)
	}
}

// consumed adds the capacity that a reply reports for a table. It separates indexes if the reply
// does.
func (c *Call) consumed(by *types.ConsumedCapacity) {
	if by == nil {
		return
	}
	table := aws.ToString(by.TableName)
	if by.Table == nil {
		c.consume(table, "", by.CapacityUnits)
		return
	}
	c.consume(table, "", by.Table.CapacityUnits)
	for _, indexes := range []map[string]types.Capacity{by.GlobalSecondaryIndexes, by.LocalSecondaryIndexes} {
		for _, index := range slices.Sorted(maps.Keys(indexes)) {
			c.consume(table, index, indexes[index].CapacityUnits)
		}
	}
}

func (c *Call) consume(table, index string, units *float64) {
	consumed := Capacity{Table: table, Index: index}
	if isRead(c.Operation) {
		consumed.ReadUnits = aws.ToFloat64(units)
	} else {
		consumed.WriteUnits = aws.ToFloat64(units)
	}
	c.ReadUnits += consumed.ReadUnits
	c.WriteUnits += consumed.WriteUnits
	c.Capacity = append(c.Capacity, consumed)
}

func isRead(operation string) bool {
	return operation == "Query" || operation == "Scan" || strings.Contains(operation, "Get")
}
