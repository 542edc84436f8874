package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

const (
	// AWS as an endpoint is the real service. So is none.
	AWS = "aws"

	// localRegion and localKey are those of the examples: DynamoDB Local keeps a database for each
	// pair of them.
	localRegion = "us-east-1"
	localKey    = "millrace"

	// dialTimeout is for a person who waits; the SDK's own is 30 seconds, three times.
	dialTimeout = 5 * time.Second
	// credentialsTimeout: without credentials elsewhere the SDK asks the metadata service of EC2,
	// which may not exist.
	credentialsTimeout = 10 * time.Second
)

// Sentinels for errors.Is.
var (
	// ErrNotSetUp: AWS is meant and not configured.
	ErrNotSetUp = errors.New("AWS is not configured")
	// ErrEndpoint: an endpoint is no URL.
	ErrEndpoint = errors.New("not an endpoint")
)

// Target says where DynamoDB is.
type Target struct {
	// Endpoint is the URL of a DynamoDB Local, such as http://127.0.0.1:8000, or [AWS], or empty,
	// which is AWS too.
	Endpoint string
	// Region and Profile go before those of the AWS configuration: environment, ~/.aws, the role of
	// the machine. A DynamoDB Local needs neither; with a Profile its URL gets requests with real
	// credentials, as a VPC endpoint needs.
	Region, Profile string
}

// String is for people.
func (t Target) String() string {
	if t.IsAWS() {
		return "DynamoDB on AWS"
	}
	return "the DynamoDB at " + t.Endpoint
}

// IsAWS reports that it is the real service.
func (t Target) IsAWS() bool { return t.Endpoint == "" || t.Endpoint == AWS }

// Connect returns a client. It asks AWS for credentials, and sends nothing else.
//
// Errors: [ErrEndpoint], [ErrNotSetUp].
func (t Target) Connect(ctx context.Context) (*dynamodb.Client, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // what matters comes back as an error
		config.WithHTTPClient(awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout })),
	}
	if t.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(t.Profile))
	}
	if t.Region != "" {
		options = append(options, config.WithRegion(t.Region))
	}
	if !t.IsAWS() && t.Profile == "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(localKey, "secret", "")))
		if t.Region == "" {
			options = append(options, config.WithRegion(localRegion))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSetUp, err)
	}
	if err := check(ctx, cfg); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSetUp, err)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if !t.IsAWS() {
			o.BaseEndpoint = &t.Endpoint
		}
	}), nil
}

func (t Target) validate() error {
	if t.IsAWS() {
		return nil
	}
	u, err := url.Parse(t.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: %q: want %s, or a URL such as http://127.0.0.1:8000", ErrEndpoint, t.Endpoint, AWS)
	}
	return nil
}

// check finds out now what the first request would run into.
func check(ctx context.Context, cfg aws.Config) error {
	if cfg.Region == "" {
		return errors.New("no region")
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	_, err := cfg.Credentials.Retrieve(ctx)
	return err
}
