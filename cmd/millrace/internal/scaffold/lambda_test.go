package scaffold_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// function is a function of the service on a runtime API, as Lambda has it.
type function struct {
	invocations chan []byte // their events
	replies     chan []byte
}

// start starts a function on the database at an endpoint.
func start(t *testing.T, dir, endpoint, name string) *function {
	t.Helper()
	f := &function{invocations: make(chan []byte), replies: make(chan []byte)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case event := <-f.invocations:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(5*time.Second).UnixMilli()))
			_, _ = w.Write(event)
		case <-r.Context().Done():
		}
	})
	reply := func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		if assert.NoError(t, err) {
			f.replies <- text
		}
	}
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/1/response", reply)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/1/error", reply)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "ticket-shop"))
	cmd.Env = append(onDatabase(endpoint), "AWS_LAMBDA_RUNTIME_API="+server.Listener.Addr().String(), "FUNCTION="+name)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return f
}

// onDatabase returns the environment of a program whose AWS is a database.
func onDatabase(endpoint string) []string {
	return append(os.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
}

func (f *function) invoke(t *testing.T, event any) []byte {
	t.Helper()
	payload, err := json.Marshal(event)
	require.NoError(t, err)
	limit := time.After(time.Minute)
	select {
	case f.invocations <- payload:
	case <-limit:
		require.Fail(t, "the function does not ask for an invocation")
	}
	select {
	case reply := <-f.replies:
		return reply
	case <-limit:
		require.Fail(t, "the function does not reply")
		return nil
	}
}

// request invokes the function for HTTP.
func (f *function) request(t *testing.T, method, path, body, token string) (status int, newToken, text string) {
	t.Helper()
	event := events.LambdaFunctionURLRequest{Version: "2.0", RawPath: path, Body: body, Headers: map[string]string{"consistency-token": token}}
	event.RequestContext.HTTP.Method = method
	event.RequestContext.HTTP.Path = path
	head, rest, found := bytes.Cut(f.invoke(t, event), make([]byte, 8))
	require.True(t, found, "%s", head)
	var reply struct {
		StatusCode int
		Headers    map[string]string
	}
	require.NoError(t, json.Unmarshal(head, &reply), "%s", head)
	return reply.StatusCode, reply.Headers["Consistency-Token"], string(rest)
}

// worksOnLambda checks both functions of a service that was built in a folder.
func worksOnLambda(t *testing.T, dir string) {
	t.Helper()
	database := httptest.NewServer(dynamotest.New(t).Handler())
	t.Cleanup(database.Close)
	createTables(t, dir, database.URL, "-create-tables")
	web, consumer := start(t, dir, database.URL, "http"), start(t, dir, database.URL, "")
	sweep := map[string]any{"source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": map[string]any{}}
	consumer.invoke(t, sweep) // creates the groups
	status, token, text := web.request(t, http.MethodPut, "/orders/1", `{"customer": "ada", "amount": 4200}`, "")
	require.Equal(t, http.StatusCreated, status, text)
	assert.NotEmpty(t, token)
	assert.NotContains(t, string(consumer.invoke(t, sweep)), "error")
	status, _, text = web.request(t, http.MethodGet, "/orders/1", "", token)
	require.Equal(t, http.StatusOK, status, text)
	assert.JSONEq(t, `{"order": "1", "customer": "ada", "amount": 4200, "status": "pending"}`, text)
}
