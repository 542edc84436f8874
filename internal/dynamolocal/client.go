package dynamolocal

import (
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Region is the region of every client of this package. DynamoDB Local accepts any region, but
// keeps a separate database for each.
const Region = "us-east-1"

// NewClient returns a client for the database that the DynamoDB Local at endpoint keeps for
// accessKey. DynamoDB Local accepts only letters and digits in an access key.
//
// Retries are the SDK's defaults. The client has its own connections, with as many idle ones as a
// test with many goroutines needs. With the SDK's default of 10 for each host, such a test would
// spend its time opening connections. To close the idle ones, call CloseIdleConnections on the
// client's HTTPClient option, which is an *http.Client.
func NewClient(endpoint, accessKey string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       Region,
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider(accessKey, "secret", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     90 * time.Second,
		}},
	})
}
