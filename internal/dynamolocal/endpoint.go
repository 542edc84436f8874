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

// EndpointEnv names the environment variable that holds the URL of a DynamoDB Local to use, such as
// http://127.0.0.1:8000.
const EndpointEnv = "MILLRACE_DYNAMODB_ENDPOINT"

// probeTimeout bounds one request of a probe, so that a port that accepts and stays silent is told
// as such.
const probeTimeout = 5 * time.Second

// EndpointFromEnv returns the endpoint that the environment names, or "" if it names none.
func EndpointFromEnv() string { return strings.TrimSpace(os.Getenv(EndpointEnv)) }

// Check returns an error unless endpoint is an http or https URL at which something answers as
// DynamoDB does. It needs no credentials and leaves no trace: DynamoDB Local opens a database for
// every access key that it sees, so the request carries none and the refusal is the answer looked
// for.
func Check(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q is not an endpoint: want a URL such as http://127.0.0.1:8000", endpoint)
	}
	if _, err = probe(ctx, endpoint, ""); err != nil {
		return fmt.Errorf("%w; unset %s to have one started", err, EndpointEnv)
	}
	return nil
}

// probe asks the endpoint for its tables without credentials. It returns the origin that the answer
// allows, which is how an emulator started with -cors tells that it is the one asked for (see
// [launch]).
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
	req.Close = true // probes come once or while nothing listens yet; no connection is worth keeping

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("no DynamoDB answers at %s: %w", endpoint, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", fmt.Errorf("no DynamoDB answers at %s: %w", endpoint, err)
	}
	// DynamoDB names the error in __type; emulators that take unsigned requests list their tables.
	if !bytes.Contains(body, []byte(`"__type"`)) && !bytes.Contains(body, []byte(`"TableNames"`)) {
		return "", fmt.Errorf("what answers at %s is not DynamoDB (HTTP %s)", endpoint, resp.Status)
	}
	return resp.Header.Get("Access-Control-Allow-Origin"), nil
}
