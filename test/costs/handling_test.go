package costs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

const model = "documents"

// handlings returns the table of the ways to handle events that update one item of less than 1 KB.
// Counted is the name of their table.
func handlings(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | round trips | read units | write units |\n|---|---|---|---|\n")
	update := types.Update{
		TableName: aws.String(model), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		UpdateExpression:          aws.String("ADD events :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}},
	}
	react := func(context.Context, Written, *journal.Record) ([]projection.Write, error) {
		return []projection.Write{projection.Update(update)}, nil
	}
	for _, h := range []struct {
		name   string
		events int
		table  string
		handle func(w world) message.NoPublishHandlerFunc
	}{
		{"an update by a handler, at least once", 1, model, func(w world) message.NoPublishHandlerFunc {
			return func(msg *message.Message) error {
				_, err := w.db.Client().UpdateItem(msg.Context(), &dynamodb.UpdateItemInput{
					TableName: update.TableName, Key: update.Key, UpdateExpression: update.UpdateExpression, ExpressionAttributeValues: update.ExpressionAttributeValues,
				})
				return err
			}
		}},
		{"a projection, an event", 1, model, func(w world) message.NoPublishHandlerFunc {
			p, err := projection.New(w.db.Client(), projection.Config{}, projection.On(react))
			require.NoError(t, err)
			return p.Handle
		}},
		{"a projection in runs, 100 events", 100, model, func(w world) message.NoPublishHandlerFunc {
			p, err := projection.NewBatch(w.db.Client(), projection.Config{},
				func(ctx context.Context, _ struct{}, run projection.Run) ([]projection.Write, error) {
					return react(ctx, Written{}, run.Last)
				},
				projection.Fold(func(*struct{}, Written, *journal.Record) error { return nil }))
			require.NoError(t, err)
			return p.Handle
		}},
		{"`dedup.Positions` around a handler, an event", 1, dedup.DefaultTable, func(w world) message.NoPublishHandlerFunc {
			p, err := dedup.NewPositions(w.db.Client(), dedup.PositionsConfig{Group: "mails"})
			require.NoError(t, err)
			return positioned(p)
		}},
		{"the same, an event that comes again", 1, dedup.DefaultTable, func(w world) message.NoPublishHandlerFunc {
			p, err := dedup.NewPositions(w.db.Client(), dedup.PositionsConfig{Group: "mails"})
			require.NoError(t, err)
			require.NoError(t, p.Set(t.Context(), document, 1))
			return positioned(p)
		}},
		{"`dedup.Keys`, a key", 1, dedup.DefaultTable, func(w world) message.NoPublishHandlerFunc {
			return func(msg *message.Message) error { return seen(w, msg, false) }
		}},
		{"the same, a key that is known", 1, dedup.DefaultTable, func(w world) message.NoPublishHandlerFunc {
			require.NoError(t, seen(w, message.NewMessageWithContext(t.Context(), id, nil), false))
			return func(msg *message.Message) error { return seen(w, msg, true) }
		}},
	} {
		cost := billOf(handling(t, h.events, h.handle, nil), h.table)
		fmt.Fprintf(&b, "| %s | %d | %g | %g |\n", h.name, cost.trips, cost.read, cost.write)
	}
	first := billOf(handling(t, 1, nil, countRows), model)
	run := billOf(handling(t, 100, nil, countRuns), model)
	claim := billOf(handling(t, 0, nil, countRows), model)
	for _, row := range []struct {
		name string
		cost bill
	}{
		{"a row for each aggregate, an event", first},
		{"the same in runs, 100 events", run},
		{"the same, before the first event in a term of the shard after the first term", claim},
	} {
		fmt.Fprintf(&b, "| %s | %d | %g | %g |\n", row.name, row.cost.trips, row.cost.read, row.cost.write)
	}
	return b.String()
}

func billOf(calls []dynamotest.Call, table string) (cost bill) {
	for _, call := range calls {
		if slices.Contains(call.Tables, table) {
			cost.trips++
			cost.read += call.ReadUnits
			cost.write += call.WriteUnits
		}
	}
	return cost
}

var (
	rowTable = projection.RowTable{Table: projection.Table{Name: model, PartitionKey: "id"}}
	count    = projection.RowUpdate{Expression: "ADD events :n", Values: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}}}
)

func countRows(w world) (*projection.Rows, error) {
	return projection.NewRows(w.db.Client(), rowTable, projection.Config{},
		projection.OnRow(func(context.Context, Written, *journal.Record) (projection.RowUpdate, error) { return count, nil }))
}

func countRuns(w world) (*projection.Rows, error) {
	return projection.NewBatchRows(w.db.Client(), rowTable, projection.Config{},
		func(context.Context, struct{}, projection.Run) (projection.RowUpdate, error) { return count, nil },
		projection.Fold(func(*struct{}, Written, *journal.Record) error { return nil }))
}

// handling returns the requests while a group handles events, with a handler or with rows.
func handling(
	t *testing.T, events int, handler func(world) message.NoPublishHandlerFunc, toRows func(world) (*projection.Rows, error),
) []dynamotest.Call {
	t.Helper()
	w := newWorld(t, journal.Classic)
	_, err := w.db.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(model), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	require.NoError(t, dedup.CreateTable(t.Context(), w.db.Client(), dedup.TableConfig{}))
	config := subscriber.Config{Journal: w.j, ConsumerGroup: "costs"}
	var handle message.NoPublishHandlerFunc
	if toRows != nil {
		rows, err := toRows(w)
		require.NoError(t, err)
		if events == 0 {
			recording := w.db.Record()
			defer recording.Stop()
			_, _, err := rows.Claim(t.Context(), subscriber.GroupKey{Name: "costs"}, document, 1)
			require.NoError(t, err)
			return recording.Calls()
		}
		config.Positions, handle = rows, rows.Handle
	} else {
		handle = handler(w)
	}
	event, err := Documents.Encode(written(200, 0))
	require.NoError(t, err)
	testjournal.Append(t, w.j, storage.Commit{
		Aggregate: document, Events: slices.Repeat([]storage.Event{{Type: event.Type, Payload: event.Payload}}, min(events, 90)),
	})
	if events > 90 {
		testjournal.Append(t, w.j, storage.Commit{
			Aggregate: document, Expected: 90, Events: slices.Repeat([]storage.Event{{Type: event.Type, Payload: event.Payload}}, events-90),
		})
	}
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(t, err)
	recording := w.db.Record()
	defer recording.Stop()
	messages, err := sub.Subscribe(t.Context(), "document")
	require.NoError(t, err)
	for last := 0; last < events; {
		msg := await.Receive(t, messages, "a message")
		require.NoError(t, handle(msg))
		msg.Ack()
		_, n, _ := subscriber.AggregateFromContext(msg.Context())
		last = max(last, int(n))
		if events > 1 {
			last = events // one run
		}
	}
	require.NoError(t, sub.Close())
	return recording.Calls()
}

func positioned(p *dedup.Positions) message.NoPublishHandlerFunc {
	handle := p.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, nil })
	return func(msg *message.Message) error {
		_, err := handle(msg)
		return err
	}
}

func seen(w world, msg *message.Message, want bool) error {
	keys, err := dedup.NewKeys(w.db.Client(), dedup.KeysConfig{Group: "mails", Window: time.Hour})
	if err != nil {
		return err
	}
	known, err := keys.IsDuplicate(msg.Context(), id)
	if err == nil && known != want {
		err = fmt.Errorf("known: %v", known)
	}
	return err
}
