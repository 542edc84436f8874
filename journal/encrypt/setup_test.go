package encrypt_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

func customer(value string) aggregate.ID { return aggregate.ID{Type: "customer", Value: value} }

func at(id aggregate.ID, number uint64) journal.Place {
	return journal.Place{Aggregate: id, Number: number}
}

// counted counts the calls of a wrapper.
type counted struct {
	encrypt.Wrapper
	wraps, unwraps atomic.Int64
}

func (c *counted) Wrap(ctx context.Context, id aggregate.ID, key []byte) ([]byte, error) {
	c.wraps.Add(1)
	return c.Wrapper.Wrap(ctx, id, key)
}

func (c *counted) Unwrap(ctx context.Context, id aggregate.ID, wrapped []byte) ([]byte, error) {
	c.unwraps.Add(1)
	return c.Wrapper.Unwrap(ctx, id, wrapped)
}

func newWrapper(t testing.TB) *counted {
	t.Helper()
	w, err := encrypt.LocalWrapper(bytes.Repeat([]byte{7}, encrypt.KeyBytes))
	require.NoError(t, err)
	return &counted{Wrapper: w}
}

func newKeys(t testing.TB, client journal.Client, w encrypt.Wrapper) *encrypt.Keys {
	t.Helper()
	keys, err := encrypt.NewKeys(client, w, encrypt.KeysConfig{})
	require.NoError(t, err)
	return keys
}

func newEncryption(t testing.TB, c encrypt.Config) *encrypt.Encryption {
	t.Helper()
	e, err := encrypt.AESGCM(c)
	require.NoError(t, err)
	return e
}

// store is a table of keys for one test.
type store struct {
	client  journal.Client
	wrapper *counted
	keys    *encrypt.Keys
}

func setup(t *testing.T) store {
	t.Helper()
	return setupWith(t, testdb.Client(t))
}

func setupWith(t *testing.T, client journal.Client) store {
	t.Helper()
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	w := newWrapper(t)
	return store{client: client, wrapper: w, keys: newKeys(t, client, w)}
}

// loseKey deletes the item of a key, without a tombstone.
func (s store) loseKey(t *testing.T, id aggregate.ID) {
	t.Helper()
	table := "keys"
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &table,
		Key: map[string]types.AttributeValue{
			"aid":            &types.AttributeValueMemberS{Value: id.String()},
			"aggregate_type": &types.AttributeValueMemberS{Value: id.Type},
		},
	})
	require.NoError(t, err)
}

// clock stands still unless a test moves it.
type clock struct{ millis atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.millis.Load()) }
func (c *clock) advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }
