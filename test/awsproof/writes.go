package awsproof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// cancelled sends transactions with false conditions, and reports their reasons.
func (p *proof) cancelled(ctx context.Context) (string, error) {
	table, err := p.table(ctx, "cancelled")
	if err != nil {
		return "", err
	}
	for n := range 4 {
		if _, err := p.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: filled("stored", fmt.Sprint(n), 10)}); err != nil {
			return "", err
		}
	}
	put := func(partition string, n int, old types.ReturnValuesOnConditionCheckFailure) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &table, Item: key(partition, fmt.Sprint(n)), ConditionExpression: aws.String(missingKey), ReturnValuesOnConditionCheckFailure: old,
		}}
	}
	const none, old = types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld
	var b strings.Builder
	b.WriteString("| transaction | error | reasons | filled | with the item |\n|---|---|---|---|---|\n")
	for _, c := range []struct {
		what    string
		actions []types.TransactWriteItem
	}{
		{"2 actions, 1 condition false", []types.TransactWriteItem{put("new", 0, none), put("stored", 0, none)}},
		{"5 actions, 3 conditions false", []types.TransactWriteItem{put("stored", 0, none), put("new", 1, none), put("stored", 1, none), put("new", 2, none), put("stored", 2, none)}},
		{"2 actions, 2 conditions false, items asked for", []types.TransactWriteItem{put("stored", 0, old), put("stored", 1, old)}},
		{"2 actions on the same item", []types.TransactWriteItem{put("new", 3, none), put("new", 3, none)}},
	} {
		_, err := p.once().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: c.actions})
		var reasons []string
		filled, items := 0, 0
		var canceled *types.TransactionCanceledException
		switch {
		case errors.As(err, &canceled):
			for _, r := range canceled.CancellationReasons {
				reasons = append(reasons, aws.ToString(r.Code))
				if aws.ToString(r.Code) != "None" {
					filled++
				}
				if len(r.Item) > 0 {
					items++
				}
			}
		case err == nil:
			return b.String(), fmt.Errorf("%s: the transaction succeeded", c.what)
		case dynamo.Code(err) != "ValidationException":
			return b.String(), fmt.Errorf("%s: %w", c.what, err)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d |\n", c.what, dynamo.Code(err), strings.Join(reasons, ", "), filled, items)
	}
	return b.String(), nil
}

// indexRules compares the units that DynamoDB reports for changes of an index with its
// documentation.
func (p *proof) indexRules(ctx context.Context) (string, error) {
	table, err := p.table(ctx, "indexes")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| change of an item | table | index | index, by the documentation |\n|---|---|---|---|\n")
	for _, c := range []struct {
		what, update string
		want         float64
	}{
		{"it begins, with an entry", "SET grp = :a, shown = :a, extra = :a", 1},
		{"an attribute that the entry lacks changes", "SET extra = :b", 0},
		{"an attribute of the entry is set to the same value", "SET shown = :a", 0},
		{"an attribute of the entry changes", "SET shown = :b", 1},
		{"the key of the entry changes", "SET grp = :b", 2},
		{"the key of the entry is removed", "REMOVE grp", 1},
		{"an attribute changes while there is no entry", "SET shown = :a", 0},
		{"the key of an entry is added", "SET grp = :a", 1},
	} {
		in := &dynamodb.UpdateItemInput{
			TableName: &table, Key: key("item", "-"), UpdateExpression: &c.update, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
			ExpressionAttributeValues: item{},
		}
		for _, value := range []string{"a", "b"} {
			if strings.Contains(c.update, ":"+value) {
				in.ExpressionAttributeValues[":"+value] = text(value)
			}
		}
		if len(in.ExpressionAttributeValues) == 0 {
			in.ExpressionAttributeValues = nil
		}
		out, err := p.Client.UpdateItem(ctx, in)
		if err != nil {
			return b.String(), err
		}
		index := aws.ToFloat64(out.ConsumedCapacity.GlobalSecondaryIndexes[byGroup].CapacityUnits)
		fmt.Fprintf(&b, "| %s | %g | %g | %g", c.what, aws.ToFloat64(out.ConsumedCapacity.Table.CapacityUnits), index, c.want)
		if index != c.want {
			b.WriteString(" **differs**")
		}
		b.WriteString(" |\n")
	}
	return b.String(), nil
}

// conflicts sends plain and transactional requests on one item at the same time, without retries.
func (p *proof) conflicts(ctx context.Context) (string, error) {
	table, err := p.table(ctx, "conflicts")
	if err != nil {
		return "", err
	}
	client := p.once()
	names, update := map[string]string{"#n": "n"}, aws.String("ADD #n :one")
	change := func(sort string) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &table, Key: key("item", sort), UpdateExpression: update, ExpressionAttributeNames: names, ExpressionAttributeValues: item{":one": one},
		}}
	}
	kinds := []struct {
		name string
		send func(ctx context.Context) error
	}{
		{"UpdateItem", func(ctx context.Context) error {
			_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &table, Key: key("item", "a"), UpdateExpression: update, ExpressionAttributeNames: names, ExpressionAttributeValues: item{":one": one},
			})
			return err
		}},
		{"TransactWriteItems", func(ctx context.Context) error {
			_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{change("a"), change("b")}})
			return err
		}},
		{"GetItem, strongly consistent", func(ctx context.Context) error {
			_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key("item", "a"), ConsistentRead: aws.Bool(true)})
			return err
		}},
		{"TransactGetItems", func(ctx context.Context) error {
			_, err := client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &table, Key: key("item", "a")}}}})
			return err
		}},
	}
	results := make([]map[string]int, len(kinds))
	err = together(ctx, len(kinds), func(ctx context.Context, k int) error {
		results[k] = map[string]int{}
		for range p.Samples {
			err := kinds[k].send(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			results[k][outcome(err)]++
		}
		return nil
	})
	var b strings.Builder
	b.WriteString("| request | result | times |\n|---|---|---|\n")
	for k, kind := range kinds {
		for _, result := range slices.Sorted(maps.Keys(results[k])) {
			fmt.Fprintf(&b, "| %s | %s | %d |\n", kind.name, result, results[k][result])
		}
	}
	return b.String(), err
}

// outcome names the result of a request.
func outcome(err error) string {
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &canceled):
		var codes []string
		for _, r := range canceled.CancellationReasons {
			codes = append(codes, aws.ToString(r.Code))
		}
		return canceled.ErrorCode() + ": " + strings.Join(codes, ", ")
	case dynamo.Code(err) != "":
		return dynamo.Code(err)
	}
	return err.Error()
}
