package dedup_test

import (
	"context"
	"fmt"
	"hash/adler32"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// seen returns the result of IsDuplicate for a key.
func seen(t *testing.T, keys *dedup.Keys, key string) bool {
	t.Helper()
	duplicate, err := keys.IsDuplicate(t.Context(), key)
	require.NoError(t, err)
	return duplicate
}

func TestAKeyIsADuplicateUntilItsWindowEnds(t *testing.T) {
	t.Parallel()
	var clock dynamotest.Clock
	clock.Freeze()
	keys := newKeys(t, database(t), dedup.KeysConfig{Window: time.Hour, Now: clock.Now})

	assert.False(t, seen(t, keys, "a"), "the first time")
	assert.True(t, seen(t, keys, "a"))
	assert.False(t, seen(t, keys, "b"), "another key")

	clock.Advance(time.Hour - time.Millisecond)
	assert.True(t, seen(t, keys, "a"), "to the end of the window")
	clock.Advance(time.Millisecond)
	assert.False(t, seen(t, keys, "a"), "a duplicate must not lengthen the window, and an item that DynamoDB has not deleted yet does not count")
	assert.True(t, seen(t, keys, "a"), "in a window of its own")
}

func TestDynamoDBDeletesAKeyAfterItsWindowAndNotBefore(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	db.Clock().Freeze()
	keys := newKeys(t, db.Client(), dedup.KeysConfig{Window: 1500 * time.Millisecond, Now: db.Clock().Now})
	require.False(t, seen(t, keys, "a"))
	items := func() int32 {
		out, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(dedup.DefaultTable)})
		require.NoError(t, err)
		return out.Count
	}

	db.Clock().Advance(1499 * time.Millisecond)
	assert.EqualValues(t, 1, items())
	db.Clock().Advance(3 * time.Second)
	assert.EqualValues(t, 0, items())
}

func TestOfManyCallsAtOnceOneIsFirst(t *testing.T) {
	t.Parallel()
	client := database(t)
	const keysEach, processes = 5, 8
	var first [keysEach]atomic.Int32
	var all sync.WaitGroup
	for range processes {
		keys := newKeys(t, client, dedup.KeysConfig{})
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range keysEach {
				duplicate, err := keys.IsDuplicate(t.Context(), fmt.Sprint(n))
				if assert.NoError(t, err) && !duplicate {
					first[n].Add(1)
				}
			}
		}()
	}
	all.Wait()
	for n := range first {
		assert.EqualValues(t, 1, first[n].Load(), "key %d", n)
	}
}

func TestGroupsAndPositionsDoNotShareKeys(t *testing.T) {
	t.Parallel()
	client := database(t)
	assert.False(t, seen(t, newKeys(t, client, dedup.KeysConfig{Group: "mails"}), "a"))
	assert.False(t, seen(t, newKeys(t, client, dedup.KeysConfig{Group: "invoices"}), "a"))
	assert.True(t, seen(t, newKeys(t, client, dedup.KeysConfig{Group: "mails"}), "a"))
}

// Watermill's hashers return checksums as raw bytes. Stored as text, all sums that are not UTF-8
// would become the same key.
func TestKeysOfAnyBytesAndLengthAreKeptApart(t *testing.T) {
	t.Parallel()
	keys := newKeys(t, database(t), dedup.KeysConfig{})
	long := strings.Repeat("k", 5000)
	sum := adler32.New()
	fmt.Fprint(sum, "payload")
	for _, key := range []string{"", "a", "\xff", "\xfe", "\xff\xfe", string(sum.Sum(nil)), long, long + "k", "=a", "a/b"} {
		assert.False(t, seen(t, keys, key), "%.10q is new", key)
		assert.True(t, seen(t, keys, key), "%.10q is known", key)
	}
}

func TestAKeyWhoseReplyWasLostIsNoDuplicateOfItself(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	keys := newKeys(t, db.Client(), dedup.KeysConfig{})
	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))

	assert.False(t, seen(t, keys, "a"), "the SDK repeats the request, and finds its own mark")
	assert.Equal(t, 1, lost.Fired())
	assert.True(t, seen(t, keys, "a"))
}

func TestTheCallAfterAFailedOneTakesItsPlace(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	here, there := newKeys(t, db.Client(), dedup.KeysConfig{}), newKeys(t, db.Client(), dedup.KeysConfig{})
	// The SDK makes three attempts for each call.
	db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(6))
	for _, key := range []string{"a", "b"} {
		_, err := here.IsDuplicate(t.Context(), key)
		require.Error(t, err, "the key is marked, but the reply is lost")
	}

	assert.False(t, seen(t, here, "a"), "a message that is delivered again in this process must be handled")
	assert.True(t, seen(t, here, "a"), "and only once")
	assert.True(t, seen(t, there, "b"), "which another process cannot know")
}

func TestAnEndedContextEndsTheCall(t *testing.T) {
	t.Parallel()
	keys := newKeys(t, database(t), dedup.KeysConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := keys.IsDuplicate(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, seen(t, keys, "a"))
}

func TestAKeyCostsOneWriteUnit(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	keys := newKeys(t, db.Client(), dedup.KeysConfig{})
	for _, what := range []string{"new", "known"} {
		record := db.Record()
		seen(t, keys, strings.Repeat("k", 100))
		read, write := record.Units()
		record.Stop()
		assert.Zero(t, read, what)
		assert.InDelta(t, 1, write, 0, what)
		assert.Len(t, record.Calls(), 1, what)
	}
}

func TestWithoutItsTableAKeyIsAnError(t *testing.T) {
	t.Parallel()
	keys := newKeys(t, database(t), dedup.KeysConfig{Table: "elsewhere"})
	_, err := keys.IsDuplicate(t.Context(), "a")
	require.ErrorIs(t, err, journal.ErrTableMissing)
	assert.ErrorContains(t, err, "dedup.CreateTable")
}

func TestCreateTableIsRepeatedAndComparesWhatIsThere(t *testing.T) {
	t.Parallel()
	client := database(t)
	createTable(t, client)
	out, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(dedup.DefaultTable)})
	require.NoError(t, err)
	assert.Equal(t, "ttl", aws.ToString(out.TimeToLiveDescription.AttributeName))

	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("other"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	require.NoError(t, err)
	err = dedup.CreateTable(t.Context(), client, dedup.TableConfig{Name: "other"})
	assert.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
}

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	client := database(t)
	for field, config := range map[string]dedup.KeysConfig{
		"Table":            {Group: "g", Table: "a b"},
		"Group is empty":   {},
		"Group has 256":    {Group: strings.Repeat("g", 256)},
		`Group "a/b"`:      {Group: "a/b"},
		`Group "\xff"`:     {Group: "\xff"},
		"Window is below":  {Group: "g", Window: time.Microsecond},
		"Window is below ": {Group: "g", Window: -1},
	} {
		_, err := dedup.NewKeys(client, config)
		require.ErrorAs(t, err, new(*dedup.ConfigError), field)
		assert.ErrorContains(t, err, strings.TrimSpace(field))
	}
	for field, config := range map[string]dedup.PositionsConfig{
		"Table":          {Group: "g", Table: "ab"},
		"Group is empty": {},
		"Gaps":           {Group: "g", Gaps: 2},
	} {
		_, err := dedup.NewPositions(client, config)
		require.ErrorAs(t, err, new(*dedup.ConfigError), field)
		assert.ErrorContains(t, err, field)
	}
	var none *dynamodb.Client
	_, err := dedup.NewKeys(none, dedup.KeysConfig{Group: "g"})
	require.ErrorAs(t, err, new(*dedup.ConfigError))
	_, err = dedup.NewPositions(nil, dedup.PositionsConfig{Group: "g"})
	require.ErrorAs(t, err, new(*dedup.ConfigError))
	require.ErrorAs(t, dedup.CreateTable(t.Context(), none, dedup.TableConfig{}), new(*dedup.ConfigError))
	require.ErrorAs(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{Name: "?"}), new(*dedup.ConfigError))
}
