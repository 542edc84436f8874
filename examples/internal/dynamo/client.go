// Package dynamo finds the DynamoDB that the examples run on.
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
)

// EndpointEnv names the environment variable with the URL of a DynamoDB Local. Without it the usual
// configuration of AWS programs counts: environment, ~/.aws, the role of the machine.
const EndpointEnv = "MILLRACE_DYNAMODB_ENDPOINT"

// ErrNotSetUp says that neither an emulator nor AWS is configured.
var ErrNotSetUp = errors.New("no DynamoDB is set up: `make demo` starts DynamoDB Local by itself; to run this program alone, " +
	"set " + EndpointEnv + " to the URL of a DynamoDB Local (`make dynamodb-local` runs one), or configure an AWS region and credentials")

// idleConnections is more than the writers and lanes of an example keep busy. The default of 10 for each
// host would have them open connections most of the time.
const idleConnections = 128

// Client gives a client for the DynamoDB that the environment names. Errors: [ErrNotSetUp].
func Client(ctx context.Context) (*dynamodb.Client, error) {
	endpoint := strings.TrimSpace(os.Getenv(EndpointEnv))
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // what matters comes back as an error
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
		})),
	}
	if endpoint != "" {
		options = append(options,
			config.WithRegion("us-east-1"),
			// The emulator takes any credentials, and keeps a database for each key.
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("millrace", "secret", "")),
		)
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if endpoint == "" {
		if err := check(ctx, cfg); err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrNotSetUp, err)
		}
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), nil
}

// check finds out now what the first request would run into.
func check(ctx context.Context, cfg aws.Config) error {
	if cfg.Region == "" {
		return errors.New("no AWS region")
	}
	// Without credentials elsewhere the SDK asks the metadata service of EC2, which may not exist.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := cfg.Credentials.Retrieve(ctx)
	return err
}
