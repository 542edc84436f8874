package journal

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/rows"
)

// ownRecord, which reads rows, must return the same as recordOf, which reads items. This holds even
// if parts of an item are missing or differ from what this package writes.
func TestRowsAreReadAsItemsAre(t *testing.T) {
	t.Parallel()
	l := classicOf(engineOf(Config{Shards: 4}))
	whole := l.itemOf(&Record{
		Aggregate: aggregate.ID{Type: "account", Value: "a-1"}, Number: 7, EventID: "e", EventType: "deposited", Payload: []byte("{}"),
		Encoding: "zip", Metadata: aggregate.Metadata{"k": "v"}, OccurredAt: time.UnixMilli(1_700_000_000_000), CommitID: "c",
	})
	own := 0
	compare := func(it item, because string) {
		want, err := l.recordOf(it)
		if read, ok := l.ownRecord(rows.Of(it), false); ok {
			own++
			require.NoError(t, err, because)
			require.Equal(t, want, read, because)
		}
		read := l.readRow(rows.Of(it), false)
		require.Equal(t, want, read.record, because)
		require.Equal(t, err != nil, read.corrupt != nil, because)
	}
	compare(whole, "whole")
	assert.Equal(t, 1, own)
	for _, name := range append(slices.Sorted(maps.Keys(whole)), "other") {
		without := maps.Clone(whole)
		delete(without, name)
		compare(without, "without "+name)
		for kind := range byte(8) {
			for _, text := range []string{"", "0", "07", "7", "8", "-7", "account-2", "a-1", "account-a-1-7", "x", "9223372036854775808"} {
				odd := maps.Clone(without)
				odd[name] = valueOf(kind, text)
				compare(odd, name+" "+text)
			}
		}
	}
	assert.Greater(t, own, 10)
	long := l.itemOf(&Record{
		Aggregate: aggregate.ID{Type: "account", Value: strings.Repeat("x", aggregate.MaxIDBytes)}, Number: 1, EventID: "e", CommitID: "c", Payload: []byte("{}"),
	})
	compare(long, "of an id that is too long")

	t.Run("numbers only", func(t *testing.T) {
		t.Parallel()
		it := item{}
		a := l.config.Attributes
		for _, name := range []string{a.PartitionKey, a.SortKey, a.OccurredAt, a.AggregateID, a.SequenceNumber} {
			it[name] = whole[name]
		}

		read := l.readRow(rows.Of(it), true)

		require.NotNil(t, read.record)
		assert.Equal(t, uint64(7), read.record.Number)
		assert.Empty(t, read.record.EventID)
		_, fast := l.ownRecord(rows.Of(it), true)
		assert.True(t, fast)
	})
}

// The journal's own client, which reads the time of replies, passes options and replies on.
func TestRepliesToTheSDKAreReadAsRows(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{{Shards: 1}, {Shards: 1, Now: time.Now}, {Shards: 1, Layout: Packed}} {
		mapped := 0
		client := dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), HTTPClient: emptyItems{},
			APIOptions: []func(*middleware.Stack) error{func(s *middleware.Stack) error {
				return s.Initialize.Add(middleware.InitializeMiddlewareFunc("maps", func(
					ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
				) (middleware.InitializeOutput, middleware.Metadata, error) {
					out, metadata, err := next.HandleInitialize(ctx, in)
					mapped += len(out.Result.(*dynamodb.QueryOutput).Items)
					return out, metadata, err
				}), middleware.Before)
			}},
		})
		j, err := newEngine(client, config)
		require.NoError(t, err)
		read, err := rows.Query(t.Context(), j.source, &dynamodb.QueryInput{TableName: aws.String("journal")}, rows.Row.Item)
		require.NoError(t, err)
		assert.Len(t, read.Items, 2)
		assert.Zero(t, mapped)
	}
	j, err := newEngine(struct{ Client }{}, Config{})
	require.NoError(t, err)
	assert.False(t, j.source.SDK)
}

// emptyItems replies with two items.
type emptyItems struct{}

func (emptyItems) Do(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(`{"Items":[{},{}]}`)),
	}, nil
}
