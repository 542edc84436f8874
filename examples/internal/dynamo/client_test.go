package dynamo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
)

// isolate hides the configuration of the machine from the test. It sets the environment, so these
// tests cannot run in parallel.
func isolate(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		dynamo.EndpointEnv, "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestAnEmulatorIsUsedWhereTheEnvironmentNamesOne(t *testing.T) {
	isolate(t)
	t.Setenv(dynamo.EndpointEnv, " http://127.0.0.1:8000\n")

	client, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:8000", *client.Options().BaseEndpoint)
	_, err = client.Options().Credentials.Retrieve(t.Context())
	assert.NoError(t, err)
}

func TestAWSIsUsedWhereTheEnvironmentSaysSo(t *testing.T) {
	isolate(t)
	t.Setenv(dynamo.EndpointEnv, dynamo.AWS)
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")

	client, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "eu-north-1", client.Options().Region)
	assert.Nil(t, client.Options().BaseEndpoint)
}

func TestWithoutEitherThereIsADatabaseInTheProcess(t *testing.T) {
	isolate(t)

	client, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	out, err := client.ListTables(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, out.TableNames)
}

func TestWhereAWSIsNotConfiguredTheErrorSaysWhatToDo(t *testing.T) {
	isolate(t)
	t.Setenv(dynamo.EndpointEnv, dynamo.AWS)

	_, err := dynamo.Client(t.Context())
	require.ErrorIs(t, err, dynamo.ErrNotSetUp, "no region")
	assert.ErrorContains(t, err, "AWS_REGION")

	t.Setenv("AWS_REGION", "eu-north-1")
	_, err = dynamo.Client(t.Context())
	assert.ErrorIs(t, err, dynamo.ErrNotSetUp, "no credentials")
}
