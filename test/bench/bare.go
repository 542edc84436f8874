package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
)

// bareWriter writes the same items as the library, directly with the SDK.
type bareWriter struct {
	client    *dynamodb.Client
	id        aggregate.ID
	partition string
	version   int
}

type item = map[string]types.AttributeValue

func (w *bareWriter) commit(ctx context.Context, list aggregate.Events[account]) error {
	return commitBare(ctx, list, w)
}

// commitBare writes the same events to several aggregates, in one transaction.
func commitBare(ctx context.Context, list aggregate.Events[account], writers ...*bareWriter) error {
	commitID := uuid.NewString()
	var items []types.TransactWriteItem
	for _, w := range writers {
		actions, err := w.actions(list, commitID)
		if err != nil {
			return err
		}
		items = append(items, actions...)
	}
	_, err := writers[0].client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items, ClientRequestToken: &commitID})
	if err != nil {
		return err
	}
	for _, w := range writers {
		w.version += len(list)
	}
	return nil
}

func (w *bareWriter) actions(list aggregate.Events[account], commitID string) ([]types.TransactWriteItem, error) {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	aid := w.id.String()
	names := map[string]string{"#pk": "pkey"}
	items := make([]types.TransactWriteItem, 0, 1+len(list))
	items = append(items, types.TransactWriteItem{Update: &types.Update{
		TableName:                aws.String("snapshot"),
		Key:                      item{"pkey": text(w.partition), "skey": text(aid + "-0")},
		UpdateExpression:         aws.String("SET #v = :next"),
		ConditionExpression:      aws.String("#v = :expected"),
		ExpressionAttributeNames: map[string]string{"#v": "version"},
		ExpressionAttributeValues: item{
			":next": number(w.version + len(list)), ":expected": number(w.version),
		},
	}})
	for i, e := range list {
		payload, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		n := w.version + 1 + i
		items = append(items, types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String("journal"),
			Item: item{
				"pkey": text(w.partition), "skey": text(fmt.Sprintf("%s-%d", aid, n)), "aid": text(aid), "seq_nr": number(n),
				"payload":     &types.AttributeValueMemberB{Value: payload},
				"occurred_at": &types.AttributeValueMemberN{Value: now},
				"event_id":    text(uuid.NewString()), "event_type": text(e.EventType()), "commit_id": text(commitID),
			},
			ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
			ExpressionAttributeNames: names,
		}})
	}
	return items, nil
}

// bareLoad reads an aggregate as the library does: it reads the head and all pages of the aggregate
// index, and decodes and applies each event.
func bareLoad(ctx context.Context, client *dynamodb.Client, partition, aid string) (account, int, error) {
	var state account
	head, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("snapshot"), Key: item{"pkey": text(partition), "skey": text(aid + "-0")}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return state, 0, err
	}
	version := head.Item["version"]
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: aws.String("journal"), IndexName: aws.String("journal-aid-index"),
		KeyConditionExpression:    aws.String("#aid = :aid AND #n BETWEEN :from AND :to"),
		ExpressionAttributeNames:  map[string]string{"#aid": "aid", "#n": "seq_nr"},
		ExpressionAttributeValues: item{":aid": text(aid), ":from": number(1), ":to": version},
	})
	n := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return state, n, err
		}
		for _, it := range page.Items {
			var e deposited
			if err := json.Unmarshal(it["payload"].(*types.AttributeValueMemberB).Value, &e); err != nil {
				return state, n, err
			}
			e.Apply(&state)
			n++
		}
	}
	return state, n, nil
}

// bareTail reads a shard of the tail index to its end and returns the number of events.
func bareTail(ctx context.Context, client *dynamodb.Client, partition string) (n int, err error) {
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: aws.String("journal"), IndexName: aws.String("journal-tail-index"),
		KeyConditionExpression:    aws.String("#pk = :pk AND #at >= :at"),
		ExpressionAttributeNames:  map[string]string{"#pk": "pkey", "#at": "occurred_at"},
		ExpressionAttributeValues: item{":pk": text(partition), ":at": number(0)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, err
		}
		n += len(page.Items)
	}
	return n, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }
