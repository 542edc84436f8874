package dynamolocal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// EndpointEnv is the name of the environment variable with the URL of a DynamoDB Local, such as
// http://127.0.0.1:8000.
const EndpointEnv = "MILLRACE_DYNAMODB_ENDPOINT"

// probeTimeout limits one request of a probe, so that an error reports a port that accepts a
// connection but does not answer.
const probeTimeout = 5 * time.Second

// EndpointFromEnv returns the endpoint that the environment names, or "" if it names none.
func EndpointFromEnv() string { return strings.TrimSpace(os.Getenv(EndpointEnv)) }

// Check returns an error unless endpoint is an http or https URL at which a server answers like
// DynamoDB. It sends no credentials: DynamoDB Local opens a database for every access key that it
// sees, so Check expects a refusal as the answer.
func Check(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q is not an endpoint: want a URL such as http://127.0.0.1:8000", endpoint)
	}
	if _, err = probe(ctx, endpoint, ""); err != nil {
		return fmt.Errorf("%w; unset %s to start one", err, EndpointEnv)
	}
	return nil
}

// probe requests the list of tables without credentials. It returns the origin that the answer
// allows. This origin shows whether the emulator is the one that was started with this -cors; see
// [launch].
func probe(ctx context.Context, endpoint, origin string) (allowed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader("{}"))
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", endpoint, err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	// A probe is a single request, or nothing listens yet, so the connection is not reused.
	req.Close = true

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("no DynamoDB answers at %s: %w", endpoint, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", fmt.Errorf("no DynamoDB answers at %s: %w", endpoint, err)
	}
	// DynamoDB names the error in __type. Emulators that accept unsigned requests list their
	// tables.
	if !bytes.Contains(body, []byte(`"__type"`)) && !bytes.Contains(body, []byte(`"TableNames"`)) {
		return "", fmt.Errorf("the server at %s is not DynamoDB (HTTP %s)", endpoint, resp.Status)
	}
	return resp.Header.Get("Access-Control-Allow-Origin"), nil
}
