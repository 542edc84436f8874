package dynamotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// ErrClosed reports a call after Close.
var ErrClosed = errors.New("dynamotest: the database or proxy is closed: its test has ended, or Close was called")

// Client returns a client of the SDK for the database. The database receives the same bytes that
// DynamoDB would, but without a socket. Each call returns another client. All clients see the same
// tables.
//
// The client retries the errors that the SDK retries by default, with 3 attempts in all. It pauses
// at most 5 ms between attempts instead of 20 s, so that tests with faults are fast. It has no
// retry quota, which many faults would use up. Options change other settings, as with dynamodb.New.
func (db *DB) Client(options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:      "us-east-1",
		Credentials: aws.NewCredentialsCache(aws.CredentialsProviderFunc(credentials)),
		HTTPClient:  &http.Client{Transport: transport{db}},
		// Signing costs a quarter of a request, and nothing verifies the signature.
		HTTPSignerV4: signer{},
		// Without this, the SDK resolves an endpoint for each request, for a host that is never
		// called.
		BaseEndpoint: aws.String("http://" + host),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxBackoff = maxBackoff
			o.Backoff = retry.NewExponentialJitterBackoff(maxBackoff)
			o.RateLimiter = ratelimit.None
		}),
	}, options...)
}

// host is the host name in requests.
const host = "dynamotest"

const maxBackoff = 5 * time.Millisecond

// signer adds the access key, but no signature.
type signer struct{}

func (signer) SignHTTP(
	_ context.Context, credentials aws.Credentials, request *http.Request, _, _, _ string, _ time.Time, _ ...func(*v4.SignerOptions),
) error {
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+credentials.AccessKeyID)
	return nil
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "dynamotest", SecretAccessKey: "secret"}, nil
}

// transport passes requests to the database in memory.
type transport struct{ db *DB }

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	// A test must not reach the real service by mistake.
	if request.URL.Host != host {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, fmt.Errorf("dynamotest: a request for %s came to the HTTP client of a database in memory: "+
			"a client with another endpoint needs another HTTPClient", request.URL.Host)
	}
	body, err := readAll(request)
	if err != nil {
		return nil, err
	}
	reply, err := t.db.serve(request.Context(), request.Header, body)
	if err != nil {
		return nil, err
	}
	return reply.response(request), nil
}

// readAll reads the body of a request.
func readAll(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	buffer := bytes.NewBuffer(make([]byte, 0, max(request.ContentLength, 0)+bytes.MinRead))
	_, err := buffer.ReadFrom(request.Body)
	if closeErr := request.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return buffer.Bytes(), nil
}

// response returns the answer in the form of an HTTP client.
func (a answer) response(to *http.Request) *http.Response {
	return &http.Response{
		StatusCode: a.status, Status: fmt.Sprint(a.status, " ", http.StatusText(a.status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        a.header(),
		Body:          io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)),
		Request:       to,
	}
}
