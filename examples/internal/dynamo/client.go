// Package dynamo returns the DynamoDB that the examples use.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/millrace-dev/millrace/dynamotest"
)

// EndpointEnv is the environment variable that chooses the DynamoDB: the URL of a DynamoDB Local,
// or [AWS]. Without it the examples use a database in the process, whose data is lost when the
// process ends.
const EndpointEnv = "MILLRACE_DYNAMODB_ENDPOINT"

// EndpointUsage describes the variable.
const EndpointUsage = EndpointEnv + " is the URL of the DynamoDB, or " + AWS + ".\nWithout it the database is in the process, and its data ends with it."

// AWS as the endpoint means the DynamoDB of AWS, with the usual configuration of AWS programs:
// environment, ~/.aws, or the role of the machine.
const AWS = "aws"

// ErrNotSetUp reports that AWS was chosen but is not configured.
var ErrNotSetUp = errors.New(EndpointEnv + " is " + AWS + ", and AWS is not configured: set AWS_REGION and credentials; " +
	"without " + EndpointEnv + " the example brings its own DynamoDB")

// idleConnections is more than the number of concurrent requests of an example. With the default of
// 10 for each host, the client would often open new connections.
const idleConnections = 128

// Client returns a client for the DynamoDB that the environment chooses. Errors: [ErrNotSetUp].
func Client(ctx context.Context) (*dynamodb.Client, error) {
	endpoint := strings.TrimSpace(os.Getenv(EndpointEnv))
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // important failures are returned as errors
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
		})),
	}
	switch endpoint {
	case "":
		return dynamotest.Open().Client(), nil
	case AWS:
		cfg, err := config.LoadDefaultConfig(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("load the AWS configuration: %w", err)
		}
		if err := check(ctx, cfg); err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrNotSetUp, err)
		}
		return dynamodb.NewFromConfig(cfg), nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, append(options,
		config.WithRegion("us-east-1"),
		// DynamoDB Local accepts any credentials, and has a database for each key.
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("millrace", "secret", "")),
	)...)
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint }), nil
}

// Where says which DynamoDB is used, and how to choose another.
func Where() string {
	switch endpoint := strings.TrimSpace(os.Getenv(EndpointEnv)); endpoint {
	case "":
		return "a DynamoDB in this process, whose data ends with it (" + EndpointEnv + "=" + AWS + " or =URL chooses another)"
	case AWS:
		return "DynamoDB on AWS"
	default:
		return "the DynamoDB at " + endpoint
	}
}

// check returns now the error that the first request would return.
func check(ctx context.Context, cfg aws.Config) error {
	if cfg.Region == "" {
		return errors.New("no AWS region")
	}
	// If the SDK finds no credentials, it asks the metadata service of EC2, which may not exist.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := cfg.Credentials.Retrieve(ctx)
	return err
}
