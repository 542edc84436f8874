package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

func TestExplainKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	assert.NoError(t, dynamo.Explain(nil, "table"))
	assert.Equal(t, plain, dynamo.Explain(plain, "table"))
	err := dynamo.Explain(&types.ResourceNotFoundException{}, "positions")
	require.ErrorIs(t, err, dynamo.ErrTableMissing)
	assert.ErrorContains(t, err, `"positions"`)
}

// failing returns the error of a request whose credentials could not be fetched, as the SDK wraps
// it.
func failing(t *testing.T, cause error) error {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{Region: "us-east-1", RetryMaxAttempts: 1, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, cause },
	)})
	_, err := client.ListTables(t.Context(), nil)
	require.Error(t, err)
	return err
}

func TestCredentialsThatCannotBeFetchedForNowAreNotMissing(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	reply := func(status int) error {
		return &smithy.OperationError{ServiceID: "STS", Err: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: errors.New("reply"),
		}}
	}
	for name, c := range map[string]struct {
		cause   error
		passing bool
	}{
		"nobody listens":      {refused, true},
		"connection cut":      {&smithy.OperationError{ServiceID: "STS", Err: &smithyhttp.RequestSendError{Err: errors.New("reset")}}, true},
		"500":                 {reply(500), true},
		"throttled":           {&smithy.OperationError{ServiceID: "STS", Err: &smithy.GenericAPIError{Code: "Throttling"}}, true},
		"400":                 {reply(400), false},
		"an unknown code":     {&smithy.OperationError{ServiceID: "STS", Err: &smithy.GenericAPIError{Code: "InvalidIdentityToken"}}, false},
		"closed":              {errors.New("the vault is closed"), false},
		"not on EC2":          {fmt.Errorf("no EC2 IMDS role found, %w", refused), false},
		"not on EC2, a proxy": {fmt.Errorf("no EC2 IMDS role found, %w", reply(403)), false},
	} {
		err := failing(t, c.cause)
		assert.Equal(t, c.passing, dynamo.IsUnreachable(err), "%s: %v", name, err)
		assert.Equal(t, !c.passing, dynamo.IsAccess(err), "%s: %v", name, err)
		assert.True(t, dynamo.IsUnsent(err), "%s: %v", name, err)
	}
}
