package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// effectsTable is the read model: a row for each aggregate, and a few counters that all aggregates
// share.
const effectsTable = "effects"

// counters is the number of rows over which the sums are spread. It is small, so that transactions
// conflict.
const counters = 4

type item = map[string]types.AttributeValue

func createEffects(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(effectsTable),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		return fmt.Errorf("create the read model: %w", err)
	}
	return dynamodb.NewTableExistsWaiter(client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(effectsTable)}, time.Minute)
}

// effect returns the entry for an event in the list of an aggregate.
func effect(number, token uint64) string { return fmt.Sprintf("%d:%x", number, token) }

func thingRow(thing string) string { return "thing " + thing }

func counterRow(thing string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(thing))
	return "counter " + strconv.FormatUint(uint64(h.Sum32()%counters), 10)
}

// effectsOf returns the updates for an event. They have no condition, and none of them is
// idempotent.
func effectsOf(e happened, r *journal.Record) []types.Update {
	return []types.Update{
		{
			TableName:        aws.String(effectsTable),
			Key:              rowKey(thingRow(r.Aggregate.Value)),
			UpdateExpression: aws.String("SET applied = list_append(if_not_exists(applied, :none), :one)"),
			ExpressionAttributeValues: item{
				":none": &types.AttributeValueMemberL{},
				":one":  &types.AttributeValueMemberL{Value: []types.AttributeValue{text(effect(r.Number, e.Token))}},
			},
		},
		{
			TableName:                 aws.String(effectsTable),
			Key:                       rowKey(counterRow(r.Aggregate.Value)),
			UpdateExpression:          aws.String("ADD events :one, amount :amount"),
			ExpressionAttributeValues: item{":one": number(1), ":amount": number(e.Amount)},
		},
	}
}

// readModel is the content of the read model.
type readModel struct {
	applied map[string][]string // by row
	sums    map[string]sums
}

type sums struct{ Events, Amount int }

func readEffects(ctx context.Context, client *dynamodb.Client) (readModel, error) {
	m := readModel{applied: map[string][]string{}, sums: map[string]sums{}}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
		TableName: aws.String(effectsTable), ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return readModel{}, fmt.Errorf("read the read model: %w", err)
		}
		for _, row := range page.Items {
			if err := m.add(row); err != nil {
				return readModel{}, fmt.Errorf("read the read model: row %v: %w", row["id"], err)
			}
		}
	}
	return m, nil
}

func (m readModel) add(row item) error {
	id, ok := row["id"].(*types.AttributeValueMemberS)
	if !ok {
		return fmt.Errorf("no id")
	}
	if list, ok := row["applied"].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			s, ok := v.(*types.AttributeValueMemberS)
			if !ok {
				return fmt.Errorf("a %T in the list", v)
			}
			m.applied[id.Value] = append(m.applied[id.Value], s.Value)
		}
		return nil
	}
	var s sums
	for name, to := range map[string]*int{"events": &s.Events, "amount": &s.Amount} {
		v, ok := row[name].(*types.AttributeValueMemberN)
		if !ok {
			return fmt.Errorf("%s is a %T", name, row[name])
		}
		n, err := strconv.Atoi(v.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*to = n
	}
	m.sums[id.Value] = s
	return nil
}

// has reports whether the number of effects is complete, correct or not.
func (m readModel) has(want history) bool {
	for thing, events := range want {
		if len(m.applied[thingRow(thing)]) < len(events) {
			return false
		}
	}
	return true
}

func rowKey(id string) item              { return item{"id": text(id)} }
func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int) types.AttributeValue  { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }
