package rows_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/rows"
)

type item = map[string]types.AttributeValue

var names = &rows.Names{
	Partition: "pkey", Sort: "skey", Aggregate: "aid", Number: "seq_nr", OccurredAt: "occurred_at",
	EventID: "event_id", EventType: "event_type", CommitID: "commit_id", Encoding: "encoding",
	Payload: "payload", Metadata: "metadata",
}

// server replies to every request with the same text.
type server struct {
	status int
	body   string
}

func (s server) Do(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(s.body)), ContentLength: int64(len(s.body)),
	}, nil
}

func (s server) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", HTTPClient: s, Retryer: aws.NopRetryer{}, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
}

var query = &dynamodb.QueryInput{TableName: aws.String("journal")}

// page is what a reader makes of a reply.
type page struct {
	items   []item
	last    item
	lastKey item
	begun   int
}

func read(t *testing.T, client rows.Client) (p page, err error) {
	t.Helper()
	reader := rows.Reader{Names: names}
	reader.Begin = func() { p.items, p.begun = nil, p.begun+1 }
	reader.Take = func(r *rows.Row) { p.items = append(p.items, names.Item(r)) }
	p.lastKey, err = reader.Query(t.Context(), client, query)
	p.last = reader.Last()
	return p, err
}

func TestRowsAreWhatTheSDKReads(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(2_000) {
		body := newGenerator(seed, seen).reply()
		client := server{200, body}.client()
		want, err := client.Query(t.Context(), query)
		require.NoError(t, err, body)

		got, err := read(t, client)

		require.NoError(t, err, body)
		require.Equal(t, 1, got.begun)
		require.Equal(t, want.LastEvaluatedKey, got.lastKey, body)
		require.Len(t, got.items, len(want.Items), body)
		for i := range want.Items {
			require.Equal(t, want.Items[i], got.items[i], body)
		}
		if n := len(want.Items); n > 0 {
			require.Equal(t, want.Items[n-1], got.last, body)
		}
	}
	for _, kind := range []string{"S", "N", "B", "M", "L", "SS", "NS", "BS", "BOOL", "NULL", "no items", "empty page", "last key"} {
		assert.True(t, seen[kind], "no reply had %s", kind)
	}
}

func TestAttributesOfOtherTypesThanExpectedAreKept(t *testing.T) {
	t.Parallel()
	body := `{"Items":[{"pkey":{"N":"1"},"seq_nr":{"S":"1"},"payload":{"S":"{}"},"metadata":{"S":"m"},"event_id":{"S":""},"skey":{"S":"a-1"}}]}`
	var row rows.Row
	reader := rows.Reader{Names: names, Begin: func() {}, Take: func(r *rows.Row) { row = *r }}

	_, err := reader.Query(t.Context(), server{200, body}.client(), query)

	require.NoError(t, err)
	assert.Equal(t, rows.Row{Sort: "a-1", Other: item{
		"pkey": &types.AttributeValueMemberN{Value: "1"}, "seq_nr": &types.AttributeValueMemberS{Value: "1"},
		"payload": &types.AttributeValueMemberS{Value: "{}"}, "metadata": &types.AttributeValueMemberS{Value: "m"},
		"event_id": &types.AttributeValueMemberS{},
	}}, row)
}

// inspector is a client of an application, which looks into replies.
type inspector struct{ *dynamodb.Client }

func (c inspector) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return c.Client.Query(ctx, in, options...)
}

func TestAnotherClientReadsItsRepliesItself(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		client := server{200, newGenerator(seed, nil).reply()}.client()
		own, err := read(t, client)
		require.NoError(t, err)

		others, err := read(t, inspector{client})

		require.NoError(t, err)
		assert.Equal(t, own.items, others.items)
		assert.Equal(t, own.lastKey, others.lastKey)
	}
}

func TestErrorsAreThoseOfTheSDK(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]server{
		"refused":      {400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`},
		"not JSON":     {200, `{"Items":[{"pkey":{"S":`},
		"another type": {200, `{"Items":[{"pkey":{"S":5}}]}`},
	} {
		_, want := s.client().Query(t.Context(), query)
		_, err := read(t, s.client())
		require.Error(t, want, name)
		require.EqualError(t, err, want.Error(), name)
	}
	var missing *types.ResourceNotFoundException
	_, err := read(t, server{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`}.client())
	require.ErrorAs(t, err, &missing)
}
