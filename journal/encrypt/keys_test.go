package encrypt_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

func (s store) scan(t *testing.T) []map[string]types.AttributeValue {
	t.Helper()
	out, err := s.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("keys"), ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	return out.Items
}

func TestAllWhoAskGetOneKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.keys.Key(t.Context(), customer("1"))
	require.ErrorIs(t, err, encrypt.ErrNoKey)

	var mu sync.Mutex
	found := map[string]bool{}
	var wait sync.WaitGroup
	for range 8 {
		wait.Add(1)
		keys := newKeys(t, s.client, s.wrapper)
		go func() {
			defer wait.Done()
			key, err := keys.EnsureKey(t.Context(), customer("1"))
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			found[string(key)] = true
		}()
	}
	wait.Wait()
	require.Len(t, found, 1)
	key, err := s.keys.Key(t.Context(), customer("1"))
	require.NoError(t, err)
	assert.Len(t, key, encrypt.KeyBytes)
	assert.True(t, found[string(key)])
	other, err := s.keys.EnsureKey(t.Context(), customer("2"))
	require.NoError(t, err)
	assert.NotEqual(t, key, other)
}

func TestTheTableHoldsWrappedKeysAndThenTombstones(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key, err := s.keys.EnsureKey(t.Context(), customer("1"))
	require.NoError(t, err)
	items := s.scan(t)
	require.Len(t, items, 1)
	wrapped := items[0]["wrapped_key"].(*types.AttributeValueMemberB).Value
	assert.False(t, bytes.Contains(wrapped, key))
	assert.NotContains(t, items[0], "destroyed_at")

	require.NoError(t, s.keys.Destroy(t.Context(), customer("1")))
	tombstone := s.scan(t)
	later, err := encrypt.NewKeys(s.client, s.wrapper, encrypt.KeysConfig{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	require.NoError(t, err)
	require.NoError(t, later.Destroy(t.Context(), customer("1")))
	require.Len(t, tombstone, 1)
	assert.NotContains(t, tombstone[0], "wrapped_key")
	assert.Contains(t, tombstone[0], "destroyed_at")
	assert.Equal(t, tombstone, s.scan(t), "the time stays that of the first")
	_, err = s.keys.Key(t.Context(), customer("1"))
	require.ErrorIs(t, err, journal.ErrKeyDestroyed)
	_, err = s.keys.EnsureKey(t.Context(), customer("1"))
	require.ErrorIs(t, err, journal.ErrKeyDestroyed)
}

func TestAnAggregateWithoutAKeyGetsNoneOnceItIsDestroyed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	require.NoError(t, s.keys.Destroy(t.Context(), customer("1")))
	_, err := s.keys.EnsureKey(t.Context(), customer("1"))
	assert.ErrorIs(t, err, journal.ErrKeyDestroyed)
	assert.ErrorAs(t, s.keys.Destroy(t.Context(), aggregate.ID{Type: "customer"}), new(*aggregate.InvalidIDError))
}

func TestAggregatesWhoseIDsReadTheSameHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	one, err := s.keys.EnsureKey(t.Context(), aggregate.ID{Type: "user", Value: "account-x"})
	require.NoError(t, err)
	other, err := s.keys.EnsureKey(t.Context(), aggregate.ID{Type: "user-account", Value: "x"})
	require.NoError(t, err)
	assert.NotEqual(t, one, other)
}

func TestAWrappedKeyIsOfUseForItsAggregateAndItsWrapperOnly(t *testing.T) {
	t.Parallel()
	s := setup(t)
	wrapped, err := s.wrapper.Wrap(t.Context(), customer("1"), make([]byte, encrypt.KeyBytes))
	require.NoError(t, err)
	_, err = s.wrapper.Unwrap(t.Context(), customer("2"), wrapped)
	require.ErrorIs(t, err, encrypt.ErrForged)

	_, err = s.keys.EnsureKey(t.Context(), customer("1"))
	require.NoError(t, err)
	stranger, err := encrypt.LocalWrapper(bytes.Repeat([]byte{8}, encrypt.KeyBytes))
	require.NoError(t, err)
	_, err = newKeys(t, s.client, stranger).EnsureKey(t.Context(), customer("1"))
	assert.ErrorIs(t, err, encrypt.ErrForged)
}

func TestAKeyWhoseReplyWasLostIsTheOneThatIsUsed(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := setupWith(t, db.Client())
	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))

	// The SDK repeats it, and finds its own item.
	key, err := s.keys.EnsureKey(t.Context(), customer("1"))

	require.NoError(t, err)
	assert.Equal(t, 1, lost.Fired())
	stored, err := s.keys.Key(t.Context(), customer("1"))
	require.NoError(t, err)
	assert.Equal(t, stored, key)
}

// Keys are created, read and destroyed while all faults of DynamoDB and the network happen. Every
// caller gets the same key, and none gets a key after a Destroy that was acknowledged.
func TestKeysStayTheSameInAStorm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t, dynamotest.WithSeed(seed))
			s := setupWith(t, db.Client())
			calm := db.Storm(0.15)
			var mu sync.Mutex
			found := map[aggregate.ID]map[string]bool{}
			var wait sync.WaitGroup
			for n := range 4 {
				wait.Add(1)
				go func() {
					defer wait.Done()
					for i := range 20 {
						id := customer(fmt.Sprint(i % 7))
						if n == 0 && i >= 15 {
							if s.keys.Destroy(t.Context(), id) == nil {
								_, err := s.keys.EnsureKey(t.Context(), id)
								assert.Error(t, err, "never again")
							}
							continue
						}
						key, err := s.keys.EnsureKey(t.Context(), id)
						if err != nil {
							continue
						}
						mu.Lock()
						if found[id] == nil {
							found[id] = map[string]bool{}
						}
						found[id][string(key)] = true
						mu.Unlock()
					}
				}()
			}
			wait.Wait()
			calm()
			require.NotEmpty(t, found)
			for id, keys := range found {
				assert.Len(t, keys, 1, "%s", id)
				stored, err := s.keys.Key(t.Context(), id)
				if err != nil {
					assert.ErrorIs(t, err, journal.ErrKeyDestroyed)
					continue
				}
				assert.True(t, keys[string(stored)])
			}
		})
	}
}

func TestErrorsOfTheTableSayWhatToDo(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	keys := newKeys(t, db.Client(), newWrapper(t))
	_, err := keys.EnsureKey(t.Context(), customer("1"))
	require.ErrorIs(t, err, journal.ErrTableMissing)
	require.ErrorContains(t, err, "encrypt.CreateTable")
	require.ErrorIs(t, keys.Destroy(t.Context(), customer("1")), journal.ErrTableMissing)

	s := setupWith(t, db.Client())
	throttled := db.Inject(dynamotest.Throttle(), dynamotest.Table("keys"))
	_, err = s.keys.EnsureKey(t.Context(), customer("1"))
	require.ErrorIs(t, err, journal.ErrThrottled)
	throttled.Remove()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.keys.EnsureKey(ctx, customer("1"))
	require.ErrorIs(t, err, context.Canceled)

	_, err = db.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("keys"), Item: map[string]types.AttributeValue{
		"aid": &types.AttributeValueMemberS{Value: "customer-1"}, "aggregate_type": &types.AttributeValueMemberS{Value: "customer"},
	}})
	require.NoError(t, err)
	_, err = s.keys.EnsureKey(t.Context(), customer("1"))
	require.ErrorAs(t, err, new(*journal.CorruptItemError))
}

func TestTheTableIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	config := encrypt.KeysConfig{Table: "more-keys", Throughput: &types.ProvisionedThroughput{
		ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1),
	}}
	for range 2 {
		require.NoError(t, encrypt.CreateTable(t.Context(), s.client, config))
	}
	keys, err := encrypt.NewKeys(s.client, s.wrapper, config)
	require.NoError(t, err)
	_, err = keys.EnsureKey(t.Context(), customer("1"))
	require.NoError(t, err)
	assert.Empty(t, s.scan(t), "it is a table of its own")
}

func TestOpenCreatesTheTableOfItsKeys(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	config := encrypt.KeysConfig{Table: "shop-keys"}
	_, err := encrypt.Open(t.Context(), client, nil, config)
	require.ErrorAs(t, err, new(*encrypt.ConfigError))
	_, err = client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &config.Table})
	require.Error(t, err, "a wrong call must create nothing")

	for range 2 { // each process does
		secret, err := encrypt.Open(t.Context(), client, newWrapper(t), config)
		require.NoError(t, err)
		require.NoError(t, secret.Destroy(t.Context(), customer("42")))
	}
	found, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &config.Table})
	require.NoError(t, err)
	assert.Len(t, found.Items, 1)
}
