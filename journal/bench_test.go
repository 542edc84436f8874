package journal_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// prompt answers immediately, so that a benchmark shows the cost of the journal itself: writes
// succeed, queries find page, and reads of an item find head.
type prompt struct {
	journal.Client
	page []item
	head item
}

func (*prompt) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (p *prompt) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return &dynamodb.QueryOutput{Items: p.page}, nil
}

func (p *prompt) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if p.head == nil {
		return p.Client.GetItem(ctx, in, opts...) // the descriptor
	}
	return &dynamodb.GetItemOutput{Item: p.head}, nil
}

func BenchmarkJournal(b *testing.B) {
	const n = 50
	db := dynamotest.New(b)
	require.NoError(b, journal.Create(b.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	client := &prompt{Client: db.Client()}
	j := testjournal.Open(b, client, journal.Config{})
	store := testjournal.Open(b, db.Client(), journal.Config{})
	commit := storage.Commit{Aggregate: user("1"), Events: events(1, n), Snapshot: &journal.Snapshot{Number: n, Payload: []byte("state")}}
	_, err := store.Internal().Append(b.Context(), commit)
	require.NoError(b, err)
	page, err := db.Client().Query(b.Context(), &dynamodb.QueryInput{
		TableName: aws.String("journal"), IndexName: aws.String("journal-aid-index"),
		KeyConditionExpression: aws.String("aid = :aid"), ExpressionAttributeValues: item{":aid": text(user("1").String())},
	})
	require.NoError(b, err)
	heads, err := db.Client().Scan(b.Context(), &dynamodb.ScanInput{TableName: aws.String("snapshot")})
	require.NoError(b, err)
	require.Len(b, heads.Items, 1)
	client.page, client.head = page.Items, heads.Items[0]

	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := j.Internal().Append(b.Context(), commit); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("events", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range j.Events(b.Context(), user("1"), 1, n) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("tail", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := j.Internal().TailShard(b.Context(), storage.TailQuery{AggregateType: "user-account"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("head", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := j.Head(b.Context(), user("1")); err != nil {
				b.Fatal(err)
			}
		}
	})
}
