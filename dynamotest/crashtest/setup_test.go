package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/crashtest"
)

// notes is a service that stores notes: PUT /{note}. A test can replace what it does.
type notes struct {
	client *dynamodb.Client
	server *http.Server
	l      net.Listener
	run    func(ctx context.Context) error // nil serves until ctx ends
}

func openNotes(ctx context.Context, client *dynamodb.Client, l net.Listener) (*notes, error) {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("notes"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
		return nil, err
	}
	n := &notes{client: client, l: l}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /{note}", func(w http.ResponseWriter, r *http.Request) {
		if err := n.put(r.Context(), r.PathValue("note")); err != nil {
			status := http.StatusServiceUnavailable
			if strings.Contains(err.Error(), "the instance has crashed") {
				status = http.StatusInternalServerError // no client must see it
			}
			http.Error(w, err.Error(), status)
		}
	})
	n.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	return n, nil
}

func (n *notes) put(ctx context.Context, note string) error {
	_, err := n.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("notes"), Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: note}},
	})
	return err
}

// Run implements crashtest.Service.
func (n *notes) Run(ctx context.Context) error {
	if n.run != nil {
		return n.run(ctx)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.server.Serve(n.l) }()
	<-ctx.Done()
	err := n.server.Shutdown(context.WithoutCancel(ctx))
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// stored returns the number of notes in the database.
func stored(t *testing.T, f *crashtest.Fleet[*notes]) int {
	t.Helper()
	found, err := f.DB().Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("notes")})
	require.NoError(t, err)
	return len(found.Items)
}

// put stores a note with the client of the fleet.
func put(t *testing.T, client *http.Client, note string) {
	t.Helper()
	status, err := send(t.Context(), client, note)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}

func send(ctx context.Context, client *http.Client, note string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "/"+note, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// probe is a test that may fail.
type probe struct {
	testing.TB
	ctx context.Context //nolint:containedctx // of the test

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (p *probe) Helper()                  {}
func (p *probe) Context() context.Context { return p.ctx }
func (p *probe) Cleanup(f func())         { p.cleanups = append(p.cleanups, f) }
func (p *probe) Logf(string, ...any)      {}
func (p *probe) Failed() bool             { return len(p.failed()) > 0 }

func (p *probe) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}

// errFatal is what a probe panics with, since it cannot end its goroutine.
var errFatal = errors.New("fatal")

func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	panic(errFatal)
}

func (p *probe) failed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.failures...)
}

// probed runs a test, and returns how it has failed.
func probed(t *testing.T, test func(t *probe)) []string {
	t.Helper()
	p := &probe{ctx: t.Context()}
	func() {
		defer func() {
			if r := recover(); r != nil && r != errFatal { //nolint:errorlint // the value itself
				panic(r)
			}
		}()
		test(p)
	}()
	p.end()
	return p.failed()
}

// end calls the cleanups of the test.
func (p *probe) end() {
	for i := len(p.cleanups) - 1; i >= 0; i-- {
		p.cleanups[i]()
	}
}
