package journal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// hook stands between the journal and DynamoDB for one operation. Calls count from 1.
type hook[I, O any] func(call int, in *I, send func() (*O, error)) (*O, error)

// meddler passes calls through hooks, if there are any.
type meddler struct {
	journal.Client
	describe hook[dynamodb.DescribeTableInput, dynamodb.DescribeTableOutput]
	create   hook[dynamodb.CreateTableInput, dynamodb.CreateTableOutput]
	putItem  hook[dynamodb.PutItemInput, dynamodb.PutItemOutput]
	getItem  hook[dynamodb.GetItemInput, dynamodb.GetItemOutput]
	query    hook[dynamodb.QueryInput, dynamodb.QueryOutput]
	scan     hook[dynamodb.ScanInput, dynamodb.ScanOutput]
	batchGet hook[dynamodb.BatchGetItemInput, dynamodb.BatchGetItemOutput]
	transGet hook[dynamodb.TransactGetItemsInput, dynamodb.TransactGetItemsOutput]
	transact hook[dynamodb.TransactWriteItemsInput, dynamodb.TransactWriteItemsOutput]

	mu    sync.Mutex
	calls map[string]int
}

func (m *meddler) count(operation string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[string]int{}
	}
	m.calls[operation]++
	return m.calls[operation]
}

func pass[I, O any](ctx context.Context, m *meddler, name string, h hook[I, O], in *I, options []func(*dynamodb.Options),
	send func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error),
) (*O, error) {
	call := m.count(name)
	if h == nil {
		return send(ctx, in, options...)
	}
	return h(call, in, func() (*O, error) { return send(ctx, in, options...) })
}

func (m *meddler) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return pass(ctx, m, "describe", m.describe, in, o, m.Client.DescribeTable)
}

func (m *meddler) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, o ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return pass(ctx, m, "create", m.create, in, o, m.Client.CreateTable)
}

func (m *meddler) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if m.transact != nil && in.ConditionExpression != nil {
		return m.putAsTransaction(ctx, in, o)
	}
	return pass(ctx, m, "put", m.putItem, in, o, m.Client.PutItem)
}

// putAsTransaction passes a commit that is one put to the hook of transactions, as a transaction
// with a single action.
func (m *meddler) putAsTransaction(ctx context.Context, in *dynamodb.PutItemInput, o []func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	put := &types.Put{
		TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}
	transaction := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: put}}}
	_, err := m.transact(m.count("transact"), transaction, func() (*dynamodb.TransactWriteItemsOutput, error) {
		_, err := m.Client.PutItem(ctx, in, o...)
		return &dynamodb.TransactWriteItemsOutput{}, err
	})
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		switch reason := canceled.CancellationReasons[0]; aws.ToString(reason.Code) {
		case "ConditionalCheckFailed":
			err = &types.ConditionalCheckFailedException{Message: reason.Message, Item: reason.Item}
		case "TransactionConflict":
			err = &types.TransactionConflictException{Message: reason.Message}
		}
	}
	return &dynamodb.PutItemOutput{}, err
}

func (m *meddler) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return pass(ctx, m, "get", m.getItem, in, o, m.Client.GetItem)
}

func (m *meddler) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return pass(ctx, m, "query", m.query, in, o, m.Client.Query)
}

func (m *meddler) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return pass(ctx, m, "scan", m.scan, in, o, m.Client.Scan)
}

func (m *meddler) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return pass(ctx, m, "batchGet", m.batchGet, in, o, m.Client.BatchGetItem)
}

func (m *meddler) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return pass(ctx, m, "transGet", m.transGet, in, o, m.Client.TransactGetItems)
}

func (m *meddler) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return pass(ctx, m, "transact", m.transact, in, o, m.Client.TransactWriteItems)
}

// wire handles the HTTP requests of commits, so that the test includes how the SDK treats replies
// and broken connections. Calls count from 1.
type wire func(call int, send func() (*http.Response, error)) (*http.Response, error)

// onCommits returns a client for the store's database with such a wire for the requests of commits:
// a transaction, or one put in the packed layout.
func (s store) onCommits(handle wire) *dynamodb.Client {
	h := &wireClient{next: s.client.Options().HTTPClient, handle: handle}
	return dynamodb.New(s.client.Options(), func(o *dynamodb.Options) { o.HTTPClient = h })
}

type wireClient struct {
	next   aws.HTTPClient
	handle wire
	mu     sync.Mutex
	calls  int
}

func (c *wireClient) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation != "TransactWriteItems" && operation != "PutItem" {
		return c.next.Do(r)
	}
	c.mu.Lock()
	c.calls++
	call := c.calls
	c.mu.Unlock()
	resp, err := c.handle(call, func() (*http.Response, error) { return c.next.Do(r) })
	if operation == "PutItem" && err == nil && resp.StatusCode == http.StatusBadRequest {
		return refusedPut(resp)
	}
	return resp, err
}

// refusedPut converts a reply that cancels a transaction to the reply for a put of the same item.
func refusedPut(resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	for reason, code := range map[string]string{
		"TransactionConflict": "TransactionConflictException", "ThrottlingError": "ThrottlingException",
		"ProvisionedThroughputExceeded": "ProvisionedThroughputExceededException", "ValidationError": "ValidationException",
	} {
		if strings.Contains(string(body), `[{"Code":"`+reason+`"`) {
			return refuse(resp.StatusCode, code, "")
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

var errConnectionLost = errors.New("connection lost")

// lose sends a request and loses the reply.
func lose(t *testing.T, send func() (*http.Response, error)) (*http.Response, error) {
	t.Helper()
	resp, err := send()
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the request whose reply is lost was refused: %s", resp.Status)
	}
	return nil, errConnectionLost
}

// reply returns a reply of DynamoDB.
func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status,
		Status:     http.StatusText(status),
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:       io.NopCloser(strings.NewReader(body)),
	}
}

// refuse returns a reply with an error.
func refuse(status int, code, rest string) (*http.Response, error) {
	return reply(status, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"says the test"`+rest+`}`), nil
}

// cancelTransaction returns the reply to a transaction whose first item was refused.
func cancelTransaction(code string) (*http.Response, error) {
	return refuse(http.StatusBadRequest, "TransactionCanceledException",
		`,"CancellationReasons":[{"Code":"`+code+`","Message":"says the test"},{"Code":"None"}]`)
}
