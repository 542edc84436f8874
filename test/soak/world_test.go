package soak

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/campaign"
)

// setup returns a small world, on DynamoDB Local if the environment names one.
func setup(t *testing.T, seed, number uint64) World {
	t.Helper()
	w := World{Seed: seed, Number: number, Commands: 40}
	if testing.Short() {
		w.Commands = 20
	}
	if testdb.IsLocal() {
		w.Client, w.Commands = testdb.Client(t), 15
	}
	return w
}

func TestNothingIsLostSkippedOrMadeUpWhateverHappens(t *testing.T) {
	t.Parallel()
	for number := range uint64(freeEvery) {
		t.Run(fmt.Sprintf("world %d", number), func(t *testing.T) {
			t.Parallel()
			report, err := setup(t, 1, number).Run(t.Context())
			require.NoError(t, err)
			assert.Empty(t, report.Findings)
			assert.NotZero(t, report.Count)
		})
	}
}

func TestAWorldThatMakesNoProgressIsGivenUpAndReported(t *testing.T) {
	t.Parallel()
	db := dynamotest.Open()
	t.Cleanup(db.Close)
	db.Inject(dynamotest.Pause(func(context.Context) { select {} }), dynamotest.On("TransactWriteItems"), dynamotest.After(30))
	report, err := World{Seed: 1, Number: 7, Layout: journal.Classic, Client: db.Client(), patience: 100 * time.Millisecond}.Run(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, report.Findings)
	last := report.Findings[len(report.Findings)-1]
	assert.Equal(t, Stuck, last.Kind, last.Text)
}

func TestASeedGivesTheSameWorldEachTime(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		w := World{Seed: 7, Number: 3, Commands: 60, Layout: layout}
		first, err := w.Run(t.Context())
		require.NoError(t, err)
		again, err := w.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, first, again)
	}
}

func TestEveryCommandAndEveryOutcomeComesUp(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for _, what := range []string{
		"conflict", "attempts used up", "throttled", "outcome unknown", "unknown and written",
		"crashed, nothing written", "read failed", "refused", "not found", "conflict of a publish",
		"truncated", "not covered", "truncated events requested", "deleted", "refused after deletion",
		"written together",
	} {
		missing[what] = true
	}
	for _, c := range commands {
		missing[c.name] = true
	}
	// Of each layout, since some outcomes are rare. Usually a few worlds are enough.
	const most = 50
	for number := uint64(0); number < most && (number < 4 || len(missing) > 0); number++ {
		for _, layout := range layouts {
			report, err := World{Seed: 5, Number: number, Commands: 80, Layout: layout}.Run(t.Context())
			require.NoError(t, err)
			for what := range report.Seen {
				delete(missing, what)
			}
		}
	}
	assert.Empty(t, missing)
}

func TestWhatIsWrongWithTheTablesIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind   campaign.Kind
		tamper func(ctx context.Context, client *dynamodb.Client, event map[string]types.AttributeValue) error
	}{
		"an event is lost": {Lost, func(ctx context.Context, client *dynamodb.Client, event map[string]types.AttributeValue) error {
			_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("journal"), Key: keyOf(event)})
			return err
		}},
		"a number is missing": {Gap, func(ctx context.Context, client *dynamodb.Client, event map[string]types.AttributeValue) error {
			_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("journal"), Key: keyOf(event)})
			return err
		}},
		"an event is another": {Wrong, func(ctx context.Context, client *dynamodb.Client, event map[string]types.AttributeValue) error {
			event["payload"] = &types.AttributeValueMemberB{Value: []byte(`{"Token":1,"Size":0,"Text":""}`)}
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: event})
			return err
		}},
		"an event cannot be read": {Lost, func(ctx context.Context, client *dynamodb.Client, event map[string]types.AttributeValue) error {
			event["payload"] = &types.AttributeValueMemberB{Value: []byte(`{`)}
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: event})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1, 1)
			w.Layout = journal.Classic
			w.tamper = func(ctx context.Context, client *dynamodb.Client) error {
				page, err := client.Query(ctx, &dynamodb.QueryInput{
					TableName: aws.String("journal"), IndexName: aws.String("journal-aid-index"),
					KeyConditionExpression:    aws.String("aid = :aid AND seq_nr = :n"),
					ExpressionAttributeValues: map[string]types.AttributeValue{":aid": &types.AttributeValueMemberS{Value: "thing-0"}, ":n": &types.AttributeValueMemberN{Value: "1"}},
				})
				if err != nil {
					return err
				}
				return test.tamper(ctx, client, page.Items[0])
			}
			report, err := w.Run(t.Context())
			require.NoError(t, err)
			found := map[campaign.Kind]bool{}
			for _, f := range report.Findings {
				found[f.Kind] = true
			}
			assert.True(t, found[test.kind], "findings: %v", report.Findings)
		})
	}
}

func TestWhatIsWrongWithPackedTablesIsFound(t *testing.T) {
	t.Parallel()
	key := map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "thing/0"}, "skey": &types.AttributeValueMemberN{Value: "1"},
	}
	change := func(name string, value types.AttributeValue) func(context.Context, *dynamodb.Client) error {
		return func(ctx context.Context, client *dynamodb.Client) error {
			_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: aws.String("journal"), Key: key, UpdateExpression: aws.String("SET #name = :value"),
				ExpressionAttributeNames:  map[string]string{"#name": name},
				ExpressionAttributeValues: map[string]types.AttributeValue{":value": value},
			})
			return err
		}
	}
	// An array with one event of an unknown command: happened{Token: 1}.
	another, err := cbor.Marshal([]packedEvent{{Type: happened{}.EventType(), Payload: []byte(`{"Token":1,"Size":0,"Text":""}`)}})
	require.NoError(t, err)
	for name, test := range map[string]struct {
		kind   campaign.Kind
		tamper func(context.Context, *dynamodb.Client) error
	}{
		"a commit is lost": {Lost, func(ctx context.Context, client *dynamodb.Client) error {
			_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("journal"), Key: key})
			return err
		}},
		"a number is missing": {Gap, func(ctx context.Context, client *dynamodb.Client) error {
			_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("journal"), Key: key})
			return err
		}},
		"an event is another":     {Wrong, change("e", &types.AttributeValueMemberB{Value: another})},
		"an event cannot be read": {Lost, change("e", &types.AttributeValueMemberB{Value: []byte("{")})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1, 1)
			w.Layout, w.tamper = journal.Packed, test.tamper
			report, err := w.Run(t.Context())
			require.NoError(t, err)
			found := map[campaign.Kind]bool{}
			for _, f := range report.Findings {
				found[f.Kind] = true
			}
			assert.True(t, found[test.kind], "findings: %v", report.Findings)
		})
	}
}

func keyOf(event map[string]types.AttributeValue) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pkey": event["pkey"], "skey": event["skey"]}
}
