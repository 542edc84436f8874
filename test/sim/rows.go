package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The knowledge of the simulation about the rows of the checkpoint table is in this file, in
// membership.go and in records.go. At the end of each world the positions in requests are compared
// with the rows in the table, so outdated knowledge is found.
const (
	checkpointTable = "checkpoint"
	positionPrefix  = "position/"
	positionSuffix  = "-0"
	attrPosition    = "position"
	valueTo         = ":to" // the value of a position
	valuePut        = ":p"  // the same by an operator
	valueEpoch      = ":e"  // the epoch of the writer
	cursorRow       = "cursor"
	attrCursor      = "occurred_at"
	valueCursor     = ":c"
)

// positionWrite is a write that moves the position of an aggregate, or one that claims it and does
// not move it.
type positionWrite struct {
	stream
	shard int
	epoch uint64 // of the writer; 0 for a read
	to    uint64
	claim bool
	put   bool // by an operator
	// effects is the number of events whose projected effects are in the same transaction.
	effects uint64
}

// membership returns the key of the membership with the owner of the shard.
func (w positionWrite) membership() string { return w.group + "/" + w.topic }

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
					w.effects = effectsIn(in)
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
	put := values[valuePut] != nil
	to := max(number(values[valueTo]), number(values[valuePut]))
	partition := text(key["pkey"])
	s := stream{groupOf(partition), topicOf(partition), strings.TrimSuffix(id, positionSuffix)}
	return positionWrite{stream: s, shard: shardOf(partition), epoch: number(values[valueEpoch]), to: to, claim: to == 0 && !put, put: put}, true
}

// isPositionRead reports whether a request reads positions, strongly consistent.
func isPositionRead(in any) bool {
	isPosition := func(key map[string]types.AttributeValue) bool {
		return strings.HasPrefix(text(key["skey"]), positionPrefix)
	}
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return aws.ToString(in.TableName) == checkpointTable && aws.ToBool(in.ConsistentRead) && isPosition(in.Key)
	case *dynamodb.BatchGetItemInput:
		asked := in.RequestItems[checkpointTable]
		return aws.ToBool(asked.ConsistentRead) && slices.ContainsFunc(asked.Keys, isPosition)
	}
	return false
}

// positionReads returns the positions in the reply to a read, without missing and unprocessed rows.
func positionReads(reply []byte) (reads []positionWrite) {
	type row map[string]map[string]any
	var got struct {
		Item      row
		Responses map[string][]row
	}
	if json.Unmarshal(reply, &got) != nil {
		return nil
	}
	for _, r := range append(got.Responses[checkpointTable], got.Item) {
		text := func(attribute string) string { s, _ := r[attribute]["S"].(string); return s }
		id, ok := strings.CutPrefix(text("skey"), positionPrefix)
		if !ok || r[attrPosition] == nil {
			continue
		}
		partition := text("pkey")
		s := stream{groupOf(partition), topicOf(partition), strings.TrimSuffix(id, positionSuffix)}
		reads = append(reads, positionWrite{stream: s, shard: shardOf(partition)})
	}
	return reads
}

// groupOf returns the group in a partition key.
func groupOf(partition string) string {
	group, _, _ := strings.Cut(partition, "/")
	return group
}

// topicOf returns the topic in a partition key, {group}/{topic}-{shard} and perhaps more.
func topicOf(partition string) string {
	_, rest, _ := strings.Cut(partition, "/")
	topic, _, _ := strings.Cut(rest, "-")
	return topic
}

// shardOf returns the number of the shard in a partition key.
func shardOf(partition string) int {
	_, rest, _ := strings.Cut(partition, "/")
	_, rest, _ = strings.Cut(rest, "-")
	digits, _, _ := strings.Cut(rest, "/")
	shard, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return shard
}

// storedEpochs reads the epochs of all shards from the memberships in the table.
func storedEpochs(ctx context.Context, client *dynamodb.Client) (map[string][]uint64, error) {
	epochs := map[string][]uint64{}
	err := scan(ctx, client, checkpointTable, func(row map[string]types.AttributeValue) {
		if text(row["skey"]) == membershipRow {
			epochs[text(row["pkey"])] = numbersOf(row["epochs"])
		}
	})
	return epochs, err
}

// storedPositions reads the positions in the table.
func storedPositions(ctx context.Context, client *dynamodb.Client) (map[stream]uint64, error) {
	positions := map[stream]uint64{}
	err := scan(ctx, client, checkpointTable, func(row map[string]types.AttributeValue) {
		if id, ok := strings.CutPrefix(text(row["skey"]), positionPrefix); ok && !isRebuilt(text(row["pkey"])) {
			partition := text(row["pkey"])
			s := stream{groupOf(partition), topicOf(partition), strings.TrimSuffix(id, positionSuffix)}
			positions[s] = max(positions[s], number(row[attrPosition]))
		}
	})
	return positions, err
}

// losePosition removes the stored position of a stream, which nothing else does. It reports whether
// there was one.
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

func numberText(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
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
