package rows_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/rows"
)

type item = map[string]types.AttributeValue

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

var batch = &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
	"journal": {Keys: []item{{"pkey": &types.AttributeValueMemberS{Value: "a"}}}},
}}

func read(t *testing.T, client *dynamodb.Client) (rows.Page[item], error) {
	t.Helper()
	return rows.Query(t.Context(), rows.Source{Client: client, SDK: true}, query, rows.Row.Item)
}

func TestRowsEqualTheItemsOfTheSDK(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(2_000) {
		body := newGenerator(seed, seen).reply()
		client := server{200, body}.client()
		want, err := client.Query(t.Context(), query)
		require.NoError(t, err, body)

		got, err := read(t, client)

		require.NoError(t, err, body)
		require.Equal(t, want.LastEvaluatedKey, got.LastKey, body)
		require.Len(t, got.Items, len(want.Items), body)
		for i := range want.Items {
			require.Equal(t, want.Items[i], got.Items[i], body)
			require.Equal(t, want.Items[i], rows.Of(want.Items[i]).Item())
		}
		if n := len(want.Items); n > 0 {
			require.Equal(t, want.Items[n-1], got.Last.Item(), body)
		}
	}
	for _, kind := range []string{"S", "N", "B", "M", "L", "SS", "NS", "BS", "BOOL", "NULL", "no items", "empty page", "last key"} {
		assert.True(t, seen[kind], "no reply had %s", kind)
	}
}

func TestAttributesAreReadByTheirKind(t *testing.T) {
	t.Parallel()
	body := `{"Items":[{"pkey":{"N":"1"},"payload":{"B":"e30="},"event_id":{"S":""},"metadata":{"M":{}},"skey":{"S":"a-1"}}]}`
	var row rows.Row

	_, err := rows.Query(t.Context(), rows.Source{Client: server{200, body}.client(), SDK: true}, query, func(r rows.Row) int {
		row = slices.Clone(r)
		return 0
	})

	require.NoError(t, err)
	assert.Equal(t, rows.Row{
		{Name: "pkey", Kind: rows.Number, Text: "1"},
		{Name: "payload", Kind: rows.Binary, Binary: []byte("{}")},
		{Name: "event_id", Kind: rows.Text},
		{Name: "metadata", Other: &types.AttributeValueMemberM{Value: item{}}},
		{Name: "skey", Kind: rows.Text, Text: "a-1"},
	}, row)
}

func TestItemsReadByKeyEqualThoseOfTheSDK(t *testing.T) {
	t.Parallel()
	unprocessed := 0
	for seed := range uint64(500) {
		g := newGenerator(seed, nil)
		body := g.batch()
		client := server{200, body}.client()
		want, err := client.BatchGetItem(t.Context(), batch)
		require.NoError(t, err, body)
		for _, sdk := range []bool{true, false} {
			items, left, err := rows.BatchGet(t.Context(), rows.Source{Client: client, SDK: sdk}, batch, rows.Row.Item)

			require.NoError(t, err, body)
			require.Equal(t, want.UnprocessedKeys, left, body)
			require.Len(t, items, len(want.Responses["journal"]), body)
			for i, it := range want.Responses["journal"] {
				require.Equal(t, it, items[i], body)
			}
		}
		unprocessed += len(want.UnprocessedKeys["journal"].Keys)
	}
	assert.NotZero(t, unprocessed)
}

// An attempt whose reply is cut off adds no rows.
func TestAnAttemptThatFailedDoesNotCount(t *testing.T) {
	t.Parallel()
	client := replying(
		`{"LastEvaluatedKey":{"pkey":{"S":"old"}},"Items":[{"pkey":{"S":"b"}},{"pk`,
		`{"Items":[{"pkey":{"S":"a"}}]}`)

	page, err := read(t, client)

	require.NoError(t, err)
	assert.Equal(t, []item{{"pkey": &types.AttributeValueMemberS{Value: "a"}}}, page.Items)
	assert.Nil(t, page.LastKey)

	client = replying(
		`{"UnprocessedKeys":{"journal":{"Keys":[{"pkey":{"S":"b"}}]}},"Responses":{"journal":[{"pkey":{"S":"b"}},{"pk`,
		`{"Responses":{"journal":[{"pkey":{"S":"a"}}]}}`)

	items, unprocessed, err := rows.BatchGet(t.Context(), rows.Source{Client: client, SDK: true}, batch, rows.Row.Item)

	require.NoError(t, err)
	assert.Equal(t, page.Items, items)
	assert.Empty(t, unprocessed)
}

// replying returns a client that receives one reply after the other, and retries after each error.
func replying(bodies ...string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(error) aws.Ternary { return aws.TrueTernary }))
			o.MaxBackoff = time.Millisecond
		}),
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			body := bodies[0]
			bodies = bodies[1:]
			return server{200, body}.Do(r)
		}),
	})
}

// A middleware, such as one that counts capacity units, sees all of a reply except the items.
func TestAMiddlewareSeesTheRestOfAReply(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		g := newGenerator(seed, nil)
		client := server{200, g.reply()}.client()
		want, err := client.Query(t.Context(), query)
		require.NoError(t, err)
		seen, err := watched(client, func(client rows.Client) error {
			_, err := rows.Query(t.Context(), rows.Source{Client: client, SDK: true}, query, rows.Row.Item)
			return err
		})
		require.NoError(t, err)
		got := seen.(*dynamodb.QueryOutput)
		got.Items, got.ResultMetadata = want.Items, want.ResultMetadata
		require.Equal(t, want, got)

		client = server{200, g.batch()}.client()
		wantBatch, err := client.BatchGetItem(t.Context(), batch)
		require.NoError(t, err)
		seen, err = watched(client, func(client rows.Client) error {
			_, _, err := rows.BatchGet(t.Context(), rows.Source{Client: client, SDK: true}, batch, rows.Row.Item)
			return err
		})
		require.NoError(t, err)
		gotBatch := seen.(*dynamodb.BatchGetItemOutput)
		gotBatch.Responses, gotBatch.ResultMetadata = wantBatch.Responses, wantBatch.ResultMetadata
		require.Equal(t, wantBatch, gotBatch)
	}
}

// watched returns the output that a middleware of the client sees.
func watched(client *dynamodb.Client, call func(rows.Client) error) (seen any, err error) {
	options := client.Options()
	options.APIOptions = append(options.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("watch", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
			out, metadata, err = next.HandleInitialize(ctx, in)
			seen = out.Result
			return out, metadata, err
		}), middleware.Before)
	})
	err = call(dynamodb.New(options))
	return seen, err
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// inspector is a client of an application that reads the items of replies.
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

		others, err := rows.Query(t.Context(), rows.Source{Client: inspector{client}}, query, rows.Row.Item)

		require.NoError(t, err)
		assert.Equal(t, own.Items, others.Items)
		assert.Equal(t, own.Last.Item(), others.Last.Item())
		assert.Equal(t, own.LastKey, others.LastKey)
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
