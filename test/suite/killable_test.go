package suite_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// killable is a database that can be killed and restarted with the data that it had acknowledged: a
// separate DynamoDB Local, or dynamotest behind a socket.
type killable struct {
	client  journal.Client
	restart func() error
}

func startKillable(t *testing.T) *killable {
	t.Helper()
	if testdb.IsLocal() {
		return startLocal(t)
	}
	return serveDynamotest(t)
}

func startLocal(t *testing.T) *killable {
	t.Helper()
	server, err := dynamolocal.Start(t.Context(), dynamolocal.Options{DBPath: dataFolder(t)})
	require.NoError(t, err)
	t.Cleanup(func() { server.Stop() })
	return &killable{
		client: newDurable(t, dynamolocal.NewClient(server.Endpoint, rand.Text())),
		restart: func() error {
			next, err := server.Restart(t.Context())
			if err == nil {
				server = next
			}
			return err
		},
	}
}

// dataFolder returns a folder in memory if the system has one: only the process is killed, and
// DynamoDB Local spends most of its time on syncing files.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "millrace-suite-") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// durable waits until the data that DynamoDB Local has acknowledged is in its files. DynamoDB Local
// acknowledges a transaction a moment before it is in the files, and would lose it if it were
// killed in that moment. DynamoDB never loses it. DynamoDB Local acknowledges the next write only
// when both are in the files.
type durable struct{ *dynamodb.Client }

const fence = "fence"

func newDurable(t *testing.T, client *dynamodb.Client) durable {
	t.Helper()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(fence),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	return durable{client}
}

func (d durable) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := d.Client.TransactWriteItems(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	_, err = d.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(fence),
		Item:      map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}},
	})
	if err != nil {
		// Not wrapped: the error of the transaction says that its outcome is unknown.
		return nil, errors.New("the reply was lost: " + err.Error())
	}
	return out, nil
}

// serveDynamotest serves dynamotest behind a socket, so that connections can break. Its data
// survives, and its address stays its own.
func serveDynamotest(t *testing.T) *killable {
	t.Helper()
	db := dynamotest.New(t)
	bound, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &breakable{Listener: bound, open: map[net.Conn]struct{}{}}
	server := &http.Server{Handler: db.Handler()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.ErrorIs(t, server.Serve(listener), http.ErrServerClosed)
	}()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		<-ended
	})
	return &killable{
		client: dynamolocal.NewClient("http://"+bound.Addr().String(), "test"),
		restart: func() error {
			listener.cut()
			// A DynamoDB Local needs at least this time to restart.
			select {
			case <-time.After(2 * time.Second):
			case <-t.Context().Done():
			}
			listener.repair()
			return nil
		},
	}
}

// breakable is a listener whose connections can be cut. Until it is repaired, it closes new ones at
// once.
type breakable struct {
	net.Listener

	mu     sync.Mutex
	broken bool
	open   map[net.Conn]struct{}
}

func (b *breakable) Accept() (net.Conn, error) {
	for {
		connection, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		broken := b.broken
		if !broken {
			b.open[connection] = struct{}{}
		}
		b.mu.Unlock()
		if !broken {
			return breakableConn{connection, b}, nil
		}
		_ = connection.Close()
	}
}

func (b *breakable) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = true
	for connection := range b.open {
		_ = connection.Close()
	}
	clear(b.open)
}

func (b *breakable) repair() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = false
}

type breakableConn struct {
	net.Conn
	of *breakable
}

func (c breakableConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// restartOnSignal makes SIGHUP restart the database, for a command. Stop ends that and returns how
// often it happened.
func (db *killable) restartOnSignal(t *testing.T) (stop func() int) {
	t.Helper()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP)
	restarts := make(chan int)
	go func() {
		n := 0
		for range signals {
			if assert.NoError(t, db.restart()) {
				n++
			}
		}
		restarts <- n
	}()
	return func() int {
		signal.Stop(signals)
		close(signals)
		return <-restarts
	}
}
