package store_test

import (
	"testing"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
)

// denied is the error of IAM for a missing permission.
type denied struct{}

func (*denied) Error() string                 { return "AccessDeniedException: not authorized" }
func (*denied) ErrorCode() string             { return "AccessDeniedException" }
func (*denied) ErrorMessage() string          { return "not authorized" }
func (*denied) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }

// isolate hides the AWS configuration of the machine from the test. It sets the environment, so
// these tests cannot run in parallel.
func isolate(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestAnEmulatorNeedsNoConfiguration(t *testing.T) {
	isolate(t)
	client, err := store.Target{Endpoint: "http://127.0.0.1:8000"}.Connect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:8000", *client.Options().BaseEndpoint)
	assert.Equal(t, "us-east-1", client.Options().Region, "that of the examples, which DynamoDB Local keeps apart from others")
	key, err := client.Options().Credentials.Retrieve(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "millrace", key.AccessKeyID)
}

func TestAWSIsMeantUnlessAnEndpointIsNamed(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, endpoint := range []string{"", store.AWS} {
		client, err := store.Target{Endpoint: endpoint}.Connect(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "eu-north-1", client.Options().Region)
		assert.Nil(t, client.Options().BaseEndpoint)
	}
	client, err := store.Target{Region: "us-west-2"}.Connect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "us-west-2", client.Options().Region)
}

func TestTheEndpointOfTheAWSConfigurationIsKnown(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	client, err := store.Target{}.Connect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "DynamoDB on AWS", store.Target{}.Reached(client).String())
	assert.False(t, store.Target{}.Reached(client).IsEmulator())

	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:8000")
	client, err = store.Target{}.Connect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "the DynamoDB at http://127.0.0.1:8000", store.Target{}.Reached(client).String())
	assert.True(t, store.Target{}.Reached(client).IsEmulator())
}

func TestWhereAWSIsNotConfiguredTheErrorSaysSo(t *testing.T) {
	isolate(t)
	_, err := store.Target{}.Connect(t.Context())
	require.ErrorIs(t, err, store.ErrNotSetUp, "no region")
	_, err = store.Target{Region: "eu-north-1"}.Connect(t.Context())
	require.ErrorIs(t, err, store.ErrNotSetUp, "no credentials")
	_, err = store.Target{Region: "eu-north-1", Profile: "nobody"}.Connect(t.Context())
	assert.ErrorIs(t, err, store.ErrNotSetUp, "no such profile")
}
