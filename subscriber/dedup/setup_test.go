package dedup_test

import (
	"strconv"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// database returns a database with the empty table.
func database(t *testing.T) *dynamodb.Client {
	t.Helper()
	client := testdb.Client(t)
	createTable(t, client)
	return client
}

// faulty is a database in which a test injects faults.
func faulty(t *testing.T, options ...dynamotest.Option) *dynamotest.DB {
	t.Helper()
	db := dynamotest.New(t, options...)
	createTable(t, db.Client())
	return db
}

func createTable(t *testing.T, client *dynamodb.Client) {
	t.Helper()
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{}))
}

func newKeys(t *testing.T, client dedup.Client, config dedup.KeysConfig) *dedup.Keys {
	t.Helper()
	if config.Group == "" {
		config.Group = "mails"
	}
	keys, err := dedup.NewKeys(client, config)
	require.NoError(t, err)
	return keys
}

func newPositions(t *testing.T, client dedup.Client, config dedup.PositionsConfig) *dedup.Positions {
	t.Helper()
	if config.Group == "" {
		config.Group = "mails"
	}
	positions, err := dedup.NewPositions(client, config)
	require.NoError(t, err)
	return positions
}

func order(id string) aggregate.ID { return aggregate.ID{Type: "order", Value: id} }

// forwarded returns the message of an event from another transport, without the context of the
// subscriber.
func forwarded(t *testing.T, id aggregate.ID, number uint64) *message.Message {
	t.Helper()
	msg := message.NewMessage(watermill.NewUUID(), []byte(id.Value+"#"+strconv.FormatUint(number, 10)))
	msg.Metadata.Set("aggregate_type", id.Type)
	msg.Metadata.Set("aggregate_id", id.Value)
	msg.Metadata.Set("sequence_number", strconv.FormatUint(number, 10))
	msg.SetContext(t.Context())
	return msg
}
