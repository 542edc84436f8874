package dynamolocal

import (
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Region is the region of every client made here. DynamoDB Local takes any, but keeps a database
// for each.
const Region = "us-east-1"

// NewClient returns a client for the database that the DynamoDB Local at endpoint keeps for
// accessKey. DynamoDB Local accepts letters and digits in an access key and no other characters.
//
// Retries are the SDK's defaults. The client has connections of its own, as many idle ones as a
// test with many goroutines keeps busy; the SDK's default of 10 a host would make such a test spend
// its time opening them. Close the idle ones with CloseIdleConnections on the client's HTTPClient
// option, which is an *http.Client.
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
