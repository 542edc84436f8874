package sim

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What the simulation knows of the rows of the checkpoint table is in this file, in roster.go and
// in records.go. At the end of each world the positions that were seen on their way are compared
// with the rows that are there, so knowledge that is out of date is found.
const (
	checkpointTable = "checkpoint"
	positionPrefix  = "position/"
	positionSuffix  = "-0"
	attrPosition    = "position"
	valueTo         = ":to" // what a position is set to
	valuePut        = ":p"  // the same by an operator
)

// positionWrite is a write that moves the position of an aggregate, or one that claims it and moves
// nothing.
type positionWrite struct {
	stream
	to    uint64
	claim bool
}

// positionWrites returns the writes of positions in a request.
func positionWrites(in any) (writes []positionWrite) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		if w, ok := positionOf(in.TableName, in.Key, in.ExpressionAttributeValues); ok {
			writes = append(writes, w)
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			if u := item.Update; u != nil {
				if w, ok := positionOf(u.TableName, u.Key, u.ExpressionAttributeValues); ok {
					writes = append(writes, w)
				}
			}
		}
	}
	return writes
}

func positionOf(table *string, key, values map[string]types.AttributeValue) (w positionWrite, ok bool) {
	if aws.ToString(table) != checkpointTable {
		return w, false
	}
	id, ok := strings.CutPrefix(text(key["skey"]), positionPrefix)
	if !ok {
		return w, false
	}
	to := max(number(values[valueTo]), number(values[valuePut]))
	partition := text(key["pkey"])
	s := stream{groupOf(partition), topicOf(partition), strings.TrimSuffix(id, positionSuffix)}
	return positionWrite{stream: s, to: to, claim: to == 0}, true
}

// groupOf takes the group out of a partition key.
func groupOf(partition string) string {
	group, _, _ := strings.Cut(partition, "/")
	return group
}

// topicOf takes the topic out of a partition key, {group}/{topic}-{shard} and perhaps more.
func topicOf(partition string) string {
	_, rest, _ := strings.Cut(partition, "/")
	topic, _, _ := strings.Cut(rest, "-")
	return topic
}

// storedPositions reads the positions that are in the table.
func storedPositions(ctx context.Context, client *dynamodb.Client) (map[stream]uint64, error) {
	positions := map[stream]uint64{}
	err := scan(ctx, client, checkpointTable, func(row map[string]types.AttributeValue) {
		if id, ok := strings.CutPrefix(text(row["skey"]), positionPrefix); ok {
			partition := text(row["pkey"])
			s := stream{groupOf(partition), topicOf(partition), strings.TrimSuffix(id, positionSuffix)}
			positions[s] = max(positions[s], number(row[attrPosition]))
		}
	})
	return positions, err
}

// losePosition removes the stored position of a stream, as nothing should. It tells whether there
// was one.
func losePosition(ctx context.Context, client *dynamodb.Client, s stream) (bool, error) {
	var key map[string]types.AttributeValue
	err := scan(ctx, client, checkpointTable, func(row map[string]types.AttributeValue) {
		partition := text(row["pkey"])
		if strings.HasPrefix(partition, s.group+"/") && topicOf(partition) == s.topic && text(row["skey"]) == positionPrefix+s.id+positionSuffix {
			key = map[string]types.AttributeValue{"pkey": row["pkey"], "skey": row["skey"]}
		}
	})
	if err != nil || key == nil {
		return false, err
	}
	_, err = client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(checkpointTable), Key: key})
	return err == nil, err
}

func scan(ctx context.Context, client *dynamodb.Client, table string, see func(map[string]types.AttributeValue)) error {
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, row := range page.Items {
			see(row)
		}
	}
	return nil
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func number(v types.AttributeValue) uint64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	u, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return u
}
