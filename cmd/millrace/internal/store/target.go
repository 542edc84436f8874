package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/millrace-dev/millrace/journal"
)

const (
	// AWS is the endpoint of the real service. An empty endpoint means the same.
	AWS = "aws"

	// localRegion and localKey are also used by the examples. DynamoDB Local has a database for
	// each pair of them.
	localRegion = "us-east-1"
	localKey    = "millrace"

	// dialTimeout is short because a person waits. The default of the SDK is three times 30
	// seconds.
	dialTimeout = 5 * time.Second
	// credentialsTimeout limits the search for credentials. The SDK asks the metadata service of
	// EC2 last, which may not exist.
	credentialsTimeout = 10 * time.Second
)

// Sentinels for errors.Is.
var (
	// ErrNotSetUp reports that AWS is not configured.
	ErrNotSetUp = errors.New("AWS is not configured")
	// ErrEndpoint reports an endpoint that is not a URL.
	ErrEndpoint = errors.New("not an endpoint")
)

// Target is a DynamoDB.
type Target struct {
	// Endpoint is the URL of a DynamoDB Local, such as http://127.0.0.1:8000, or [AWS]. Empty means
	// AWS.
	Endpoint string
	// Region and Profile replace those of the AWS configuration (environment, ~/.aws, the role of
	// the machine). A DynamoDB Local needs neither. With a Profile, requests to a URL have real
	// credentials, as a VPC endpoint needs.
	Region, Profile string
}

// String returns a text for people.
func (t Target) String() string {
	if t.IsAWS() {
		return "DynamoDB on AWS"
	}
	return "the DynamoDB at " + t.Endpoint
}

// IsAWS reports whether the target is the real service.
func (t Target) IsAWS() bool { return t.Endpoint == "" || t.Endpoint == AWS }

// IsEmulator reports whether the target is an endpoint outside of AWS, such as a DynamoDB Local.
func (t Target) IsEmulator() bool { return !t.IsAWS() && !strings.Contains(t.Endpoint, ".amazonaws.") }

// Reached returns the target that a client of t sends its requests to. If t is AWS, the AWS
// configuration can set another endpoint, such as by AWS_ENDPOINT_URL.
func (t Target) Reached(client journal.Client) Target {
	c, ok := client.(interface{ Options() dynamodb.Options })
	if !ok || !t.IsAWS() {
		return t
	}
	t.Endpoint = aws.ToString(c.Options().BaseEndpoint)
	return t
}

// OwnTables says which tables an emulator shows to a client of t.
func (t Target) OwnTables() string {
	text := "DynamoDB Local has separate tables for each access key and region, unless it runs with -sharedDb. "
	if t.IsAWS() || t.Profile != "" {
		return text + "The command uses those of the AWS configuration."
	}
	return text + fmt.Sprintf("With an endpoint, the command uses the access key %q and the region %q. "+
		"To use those of the AWS configuration, set AWS_ENDPOINT_URL in place of the endpoint.", localKey, cmp.Or(t.Region, localRegion))
}

// Connect returns a client. It makes no requests except those for credentials.
//
// Errors: [ErrEndpoint], [ErrNotSetUp].
func (t Target) Connect(ctx context.Context) (*dynamodb.Client, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // errors are returned
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

// check returns the error of configuration that the first request would have.
func check(ctx context.Context, cfg aws.Config) error {
	if cfg.Region == "" {
		return errors.New("no region")
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	_, err := cfg.Credentials.Retrieve(ctx)
	return err
}
