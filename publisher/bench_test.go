package publisher_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// BenchmarkPublish measures the time that Publish adds to the journal's Append. The database
// replies at once.
func BenchmarkPublish(b *testing.B) {
	s := newStore(b, journal.Config{})
	j, err := journal.Open(context.Background(), &agreeing{s.wire}, journal.Config{})
	require.NoError(b, err)
	p := s.publisher(publisher.Config{Journal: j})
	event := storage.Event{ID: "1", Payload: []byte("x")}

	b.Run("Append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := j.Internal().Append(context.Background(), storage.Commit{Aggregate: order1, Expected: 1, Events: []storage.Event{event}})
			require.NoError(b, err)
		}
	})
	b.Run("Publish", func(b *testing.B) {
		b.ReportAllocs()
		msg := messageTo(order1, "x")
		for b.Loop() {
			require.NoError(b, p.Publish("order", msg))
		}
	})
	b.Run("Publish/99", func(b *testing.B) {
		b.ReportAllocs()
		msgs := messagesTo(order1, "x", 99)
		for b.Loop() {
			require.NoError(b, p.Publish("order", msgs...))
		}
	})
	b.Run("Publish/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			msg := []*message.Message{messageTo(order1, "x")}
			for pb.Next() {
				if err := p.Publish("order", msg...); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// agreeing is a database that accepts every transaction.
type agreeing struct{ journal.Client }

func (agreeing) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{}, nil
}
