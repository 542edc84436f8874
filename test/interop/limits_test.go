package interop_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/repository"
)

// These tests check statements of docs/guides/interop.md about event-store-adapter-js 2.2.94, so
// that a change in a later version is noticed.

// It uses only the milliseconds within the second as the time. Such events are at the very
// beginning of the tail index, where no reader looks for new events.
func TestThePeerDatesAllEventsIntoTheFirstSecondOf1970(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours, peer := open(t, client, peerConfig, repository.Every(1)), startPeer(t, client, peerConfig, nil)
	peer.open("1", "Ann")
	peer.deposit("1", 1, true)

	for _, record := range ours.records("1") {
		assert.GreaterOrEqual(t, record.OccurredAt.UnixMilli(), int64(0))
		assert.Less(t, record.OccurredAt.UnixMilli(), int64(1000))
	}
	for _, event := range peer.events("1") {
		assert.WithinDuration(t, time.Now(), time.UnixMilli(event.Millis), time.Hour, "the payload has the time")
	}
}

// keepSnapshotCount sets the TTL of the newest redundant snapshots, which others wrote, to 0 to 59:
// the seconds within the minute. DynamoDB does not delete an item whose TTL is more than five years
// ago.
func TestThePeerWritesNoRedundantSnapshotsAndDeletesNone(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours := open(t, client, peerConfig, repository.Every(1))
	id := aggregate.ID{Type: "account", Value: "1"}
	ttls := func() (ttls []int) {
		out, err := client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("snapshot"), IndexName: aws.String("snapshots-aid-index"),
			KeyConditionExpression:    aws.String("aid = :aid AND seq_nr > :zero"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":aid": text(id.String()), ":zero": number(0)},
		})
		require.NoError(t, err)
		for _, row := range out.Items {
			ttl, err := strconv.Atoi(row["ttl"].(*types.AttributeValueMemberN).Value)
			require.NoError(t, err)
			ttls = append(ttls, ttl)
		}
		return ttls
	}
	plain := startPeer(t, client, peerConfig, object{"keepSnapshotCount": 1})
	plain.open("1", "Ann")
	plain.deposit("1", 1, true)
	plain.deposit("1", 1, true)
	assert.Empty(t, ttls(), "it has written no redundant snapshot")

	// As a program of the family in Go or Java writes them.
	for n := 1; n <= 3; n++ {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("snapshot"), Item: map[string]types.AttributeValue{
			"pkey": text(storage.ShardKey(id.Type, ours.journal.Internal().Shard(id))), "skey": text(fmt.Sprint(id, "-", n)),
			"aid": text(id.String()), "seq_nr": number(n), "version": number(n), "ttl": number(0), "payload": text("{}"),
		}})
		require.NoError(t, err)
	}
	plain.deposit("1", 1, true)
	assert.Equal(t, []int{0, 0, 0}, ttls(), "without a TTL it does nothing")

	startPeer(t, client, peerConfig, object{"keepSnapshotCount": 1, "deleteTtlDays": 1}).deposit("1", 1, true)
	marked := ttls()
	require.Len(t, marked, 3)
	assert.Zero(t, marked[0], "the oldest stays unmarked")
	assert.Less(t, marked[1], 60)
	assert.Less(t, marked[2], 60)
}

// It reads one page of events, 1 MB, and treats it as all events.
func TestThePeerTakesTheFirstMegabyteOfEventsForAllOfThem(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours, peer := open(t, client, peerConfig, repository.Never), startPeer(t, client, peerConfig, nil)
	ours.execute("1", Opened{"Ann"})
	for range 15 {
		ours.execute("1", Opened{strings.Repeat("A", 100<<10)})
	}
	a := peer.load("1")
	assert.EqualValues(t, 16, a.Version)
	assert.Less(t, a.SequenceNumber, a.Version, "it must see that events are missing, but does not")
	assert.Contains(t, peer.ask("deposit", object{"id": "1", "amount": 1}, nil), "OptimisticLockError",
		"the condition on the event's row, which the Java and Rust programs lack, keeps an event from being overwritten")

	open(t, client, peerConfig, repository.Every(1)).execute("1", Opened{"Ann"}) // a snapshot helps
	peer.deposit("1", 1, true)
	assert.Equal(t, peerAccount{Owner: "Ann", Balance: 1, SequenceNumber: 18, Version: 18}, peer.load("1"))
}

// A stream of a Publisher has a head without state. So has an aggregate whose first state was too
// large for an item.
func TestThePeerCannotReadAHeadWithoutState(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours, peer := open(t, client, peerConfig, repository.Every(1)), startPeer(t, client, peerConfig, nil)
	testjournal.Append(t, ours.journal, storage.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: "1"}, Events: []storage.Event{{Type: "AccountOpened", Payload: []byte("{}")}},
	})

	assert.Contains(t, peer.ask("load", object{"id": "1"}, nil), "TypeError")
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
