package encrypt_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/publisher"
)

// lost is a journal with one encrypted event, whose key is lost.
type lost struct {
	store
	client *dynamodb.Client
	key    map[string]types.AttributeValue
}

// open returns the journal as another process opens it, with an empty cache of keys.
func (l lost) open(t *testing.T, c encrypt.Config) *journal.Journal {
	t.Helper()
	c.Keys = l.keys
	return testjournal.Open(t, l.client, journal.Config{Encodings: []journal.Encoding{newEncryption(t, c)}})
}

func said(expected uint64, numbers ...string) storage.Commit {
	c := storage.Commit{Aggregate: customer("1"), Expected: expected}
	for _, number := range numbers {
		c.Events = append(c.Events, storage.Event{Type: "said", Payload: []byte(number)})
	}
	return c
}

// requireReadable restores the key.
func (l lost) requireReadable(t *testing.T) {
	t.Helper()
	require.Empty(t, l.scan(t), "the lost key was replaced")
	_, err := l.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("keys"), Item: l.key})
	require.NoError(t, err)
	for r, err := range l.open(t, encrypt.Config{}).Events(t.Context(), customer("1"), 1, 1) {
		require.NoError(t, err, "the restored key decrypts the events")
		assert.Equal(t, "first", string(r.Payload))
	}
}

// forBothLayouts runs a test on a journal whose aggregate customer-1 has one event and no key.
func forBothLayouts(t *testing.T, test func(t *testing.T, l lost)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		client := dynamotest.New(t).Client()
		l := lost{store: setupWith(t, client), client: client}
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: layout}))
		testjournal.Append(t, l.open(t, encrypt.Config{}), said(0, "first"))
		l.key = l.scan(t)[0]
		l.loseKey(t, customer("1"))

		test(t, l)
	})
}

func TestACommitThatIsRefusedDoesNotReplaceALostKey(t *testing.T) {
	t.Parallel()
	forBothLayouts(t, func(t *testing.T, l lost) {
		for _, c := range []encrypt.Config{{}, {AllowLateKeys: true}, {CacheLifetime: -1}} {
			_, err := l.open(t, c).Internal().Append(t.Context(), said(0, "another first", "and second"))
			var conflict *journal.ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, journal.ConflictError{ID: customer("1"), Actual: 1}, *conflict)
			assert.NotErrorAs(t, err, new(*journal.EncodingError), "a caller has to load it again")
			_, err = l.open(t, c).Internal().Append(t.Context(), said(1, "second"))
			require.ErrorIs(t, err, encrypt.ErrNoKey)
		}
		l.requireReadable(t)
	})
}

func TestAJointCommitThatIsRefusedDoesNotReplaceALostKey(t *testing.T) {
	t.Parallel()
	forBothLayouts(t, func(t *testing.T, l lost) {
		_, err := l.open(t, encrypt.Config{}).Internal().AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{
			said(0, "first"),
			{Aggregate: customer("2"), Events: []storage.Event{{Type: "said"}}},
		}})
		require.ErrorIs(t, err, journal.ErrConflict)
		l.requireReadable(t)
	})
}

func TestAMessageThatExpectsNoVersionDoesNotReplaceALostKey(t *testing.T) {
	t.Parallel()
	forBothLayouts(t, func(t *testing.T, l lost) {
		publish := func(expect func(*message.Message)) error {
			pub, err := publisher.NewPublisher(publisher.Config{Journal: l.open(t, encrypt.Config{})}, nil)
			require.NoError(t, err)
			defer func() { assert.NoError(t, pub.Close()) }()
			msg := message.NewMessage("1", nil)
			msg.Metadata.Set(publisher.AggregateIDKey, "1")
			expect(msg)
			return pub.Publish("customer", msg)
		}
		require.ErrorIs(t, publish(func(msg *message.Message) { publisher.SetExpectedVersion(msg, 0) }), journal.ErrConflict)
		require.ErrorIs(t, publish(func(*message.Message) {}), encrypt.ErrNoKey)
		l.requireReadable(t)
	})
}

func TestADeletedAggregateGetsNoKeyForTheLostOne(t *testing.T) {
	t.Parallel()
	forBothLayouts(t, func(t *testing.T, l lost) {
		require.NoError(t, l.open(t, encrypt.Config{}).Delete(t.Context(), customer("1"), 1, journal.RemoveOptions{}))
		_, err := l.open(t, encrypt.Config{}).Internal().Append(t.Context(), said(0, "another first"))
		require.ErrorAs(t, err, new(*journal.DeletedError))
		assert.Empty(t, l.scan(t))
	})
}

func TestASnapshotOfTheFirstEventDoesNotReplaceALostKey(t *testing.T) {
	t.Parallel()
	forBothLayouts(t, func(t *testing.T, l lost) {
		command := said(1)
		command.CommandID, command.Snapshot = "look", &journal.Snapshot{Number: 1, Payload: []byte("state")}
		for _, c := range []encrypt.Config{{}, {AllowLateKeys: true}} {
			receipt, err := l.open(t, c).Internal().Append(t.Context(), command)
			if err == nil {
				assert.ErrorIs(t, receipt.SnapshotError, encrypt.ErrNoKey)
			}
		}
		l.requireReadable(t)
	})
}

func TestALostKeyOfAnAggregateWithoutEventsIsReplaced(t *testing.T) {
	t.Parallel()
	forBothLayouts(t, func(t *testing.T, l lost) {
		_, err := l.keys.EnsureKey(t.Context(), customer("2"))
		require.NoError(t, err)
		l.loseKey(t, customer("2"))
		c := said(0, "first")
		c.Aggregate = customer("2")
		testjournal.Append(t, l.open(t, encrypt.Config{}), c)
	})
}

// The package overview says so under "Cost".
func TestTheFirstEventCostsThreeMoreRoundTripsThanLaterOnes(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		db := dynamotest.New(t)
		l := lost{store: setupWith(t, db.Client()), client: db.Client()}
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1, Layout: layout}))
		j := l.open(t, encrypt.Config{})
		plain := testjournal.Open(t, db.Client(), journal.Config{})
		cost := func(log *engine.Engine, c storage.Commit) (calls int, read, write float64) {
			recorded := db.Record()
			_, err := log.Append(t.Context(), c)
			require.NoError(t, err)
			read, write = recorded.Units()
			return len(recorded.Calls()), read, write
		}
		c := said(0, "first")
		c.Aggregate = customer("2")
		calls, read, write := cost(plain.Internal(), c)
		first, firstRead, firstWrite := cost(j.Internal(), said(0, "first"))
		assert.Equal(t, calls+3, first, layout)
		assert.InDelta(t, read+2, firstRead, 0, layout)
		assert.InDelta(t, write+1, firstWrite, 0, layout)
		c.Expected = 1
		calls, read, write = cost(plain.Internal(), c)
		later, laterRead, laterWrite := cost(j.Internal(), said(1, "second"))
		assert.Equal(t, []float64{float64(calls), read, write}, []float64{float64(later), laterRead, laterWrite}, layout)
	}
}
