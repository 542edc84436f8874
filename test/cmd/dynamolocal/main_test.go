package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

func TestCommandRunsAgainstTheEndpointThatTheEnvironmentNames(t *testing.T) {
	endpoint := fakeDynamoDB(t)
	code, stdout, stderr := dynamolocalWith("--", "sh", "-c", "echo at $"+dynamolocal.EndpointEnv+"; exit 7")
	assert.Equal(t, 7, code, stderr)
	assert.Equal(t, "at "+endpoint+"\n", stdout)
}

func TestWithoutACommandTheLineToExportIsPrinted(t *testing.T) {
	endpoint := fakeDynamoDB(t)
	code, stdout, stderr := dynamolocalWith()
	assert.Equal(t, 0, code, stderr)
	assert.Equal(t, "export "+dynamolocal.EndpointEnv+"="+endpoint+"\n", stdout)
}

func TestExitCodeTellsWhatWentWrong(t *testing.T) {
	fakeDynamoDB(t)
	code, _, stderr := dynamolocalWith("--", "no-such-command")
	assert.Equal(t, 127, code)
	assert.Contains(t, stderr, "no-such-command")

	code, _, stderr = dynamolocalWith("-no-such-flag")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "usage: dynamolocal")

	code, _, _ = dynamolocalWith("-h")
	assert.Equal(t, 0, code)

	t.Setenv(dynamolocal.EndpointEnv, "nowhere")
	code, _, stderr = dynamolocalWith("--", "sh", "-c", "exit 0")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, dynamolocal.EndpointEnv)
}

func dynamolocalWith(args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

// fakeDynamoDB sets the environment to a server that replies as DynamoDB does.
func fakeDynamoDB(t *testing.T) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"TableNames":[]}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv(dynamolocal.EndpointEnv, server.URL)
	return server.URL
}
