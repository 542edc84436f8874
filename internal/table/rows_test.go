package table

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// The table's own client, which reads the time of replies, passes options and replies on.
func TestRepliesToTheSDKAreReadAsRows(t *testing.T) {
	t.Parallel()
	for _, now := range []func() time.Time{nil, time.Now} {
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
		read, err := rows.Query(t.Context(), New(client, &Settings{Now: now}).Source, &dynamodb.QueryInput{TableName: aws.String("journal")}, rows.Row.Item)
		require.NoError(t, err)
		assert.Len(t, read.Items, 2)
		assert.Zero(t, mapped)
	}
	assert.False(t, New(struct{ journaltype.Client }{}, &Settings{}).Source.SDK)
}

// emptyItems replies with two items.
type emptyItems struct{}

func (emptyItems) Do(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(`{"Items":[{},{}]}`)),
	}, nil
}
