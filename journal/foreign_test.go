package journal_test

import (
	"fmt"
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
	"github.com/millrace-dev/millrace/journal"
)

// foreignEvent returns an event as another member of the event-store-adapter family writes it.
func (s store) foreignEvent(id aggregate.ID, n int, payload types.AttributeValue, occurredAt int64) item {
	a := s.Engine.Config.Attributes
	it := s.keyOf(id, n)
	it[a.AggregateID], it[a.SequenceNumber] = text(id.String()), number(int64(n))
	it[a.Payload], it[a.OccurredAt] = payload, number(occurredAt)
	return it
}

// foreignUpdate updates the head like another member of the family: it sets payload, sequence
// number and version, and leaves other attributes.
func (s store) foreignUpdate(t *testing.T, id aggregate.ID, version int64, payload string) {
	t.Helper()
	a := s.Engine.Config.Attributes
	_, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String(s.Config().Tables.Snapshot),
		Key:                       s.keyOf(id, 0),
		UpdateExpression:          aws.String("SET #p = :p, #n = :n, #v = :v"),
		ExpressionAttributeNames:  map[string]string{"#p": a.Payload, "#n": a.SequenceNumber, "#v": a.Version},
		ExpressionAttributeValues: item{":p": binary(payload), ":n": number(0), ":v": number(version)},
	})
	require.NoError(t, err)
}

func TestForeignEventsAreRecords(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		id := user("1")
		s.put(t, s.Config().Tables.Journal, s.foreignEvent(id, 1, text(`{"as":"text"}`), 1_600_000_000_000))
		// A program in JavaScript stores only the milliseconds of the time, 0 to 999.
		s.put(t, s.Config().Tables.Journal, s.foreignEvent(id, 2, binary("as binary"), 999))
		// This time is in nanoseconds.
		s.put(t, s.Config().Tables.Journal, s.foreignEvent(id, 3, binary(""), 1_600_000_000_000_000_000))

		records, err := read(t, s.Engine, id, 1, 3)
		require.NoError(t, err)

		want := []journal.Record{
			{Number: 1, Payload: []byte(`{"as":"text"}`), OccurredAt: time.UnixMilli(1_600_000_000_000).UTC()},
			{Number: 2, Payload: []byte("as binary"), OccurredAt: time.UnixMilli(999).UTC()},
			{Number: 3, Payload: []byte{}, OccurredAt: time.UnixMilli(1_600_000_000_000_000_000).UTC()},
		}
		// Consumers know these events by these ids: they must never change.
		ids := []string{"2b3b9b48-9c66-5711-a117-9fe28e151453", "2ddc59cb-a0f2-5428-8bf3-becb30259c92", "4cd78da2-2e4e-5eb5-88f8-ce90555e185c"}
		require.Len(t, records, len(want))
		for i := range want {
			want[i].Aggregate, want[i].EventID, want[i].WrittenAt = id, ids[i], want[i].OccurredAt
			assert.Equal(t, want[i], *records[i])
		}
	})
}

func TestAnEventWithoutIDGetsTheSameDerivedOneAsAForeignEvent(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: []storage.Event{{}}})

		records, err := read(t, s.Engine, user("1"), 1, 1)

		require.NoError(t, err)
		assert.Equal(t, "2b3b9b48-9c66-5711-a117-9fe28e151453", records[0].EventID)
	})
}

func TestTheSnapshotsNumberCountsOnlyWhileTheSnapshotIsOurs(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		id := user("1")
		mustAppend(t, s, storage.Commit{
			Aggregate: id, Events: events(1, 3), Snapshot: &journal.Snapshot{Number: 3, Payload: []byte("ours")},
		})
		want := func(version uint64, snapshot *journal.Snapshot) {
			t.Helper()
			head := mustHead(t, s, id)
			assert.Equal(t, journal.Head{Aggregate: id, Version: version, Snapshot: snapshot}, head)
		}
		want(3, &journal.Snapshot{Number: 3, Payload: []byte("ours")})

		s.foreignUpdate(t, id, 4, "theirs")
		want(4, &journal.Snapshot{Number: 0, Payload: []byte("theirs")})

		mustAppend(t, s, storage.Commit{Aggregate: id, Expected: 4, Events: events(5, 1)})
		want(5, &journal.Snapshot{Number: 0, Payload: []byte("theirs")})

		mustAppend(t, s, storage.Commit{
			Aggregate: id, Expected: 5, Events: events(6, 1), Snapshot: &journal.Snapshot{Number: 6, Payload: []byte("ours again")},
		})
		want(6, &journal.Snapshot{Number: 6, Payload: []byte("ours again")})
	})
}

func TestAHeadWithoutPayloadHasNoSnapshot(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 2)

		head := mustHead(t, s, user("1"))
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 2}, head)
	})
}

func TestACorruptHeadIsAnErrorWithItsKeys(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for name, version := range map[string]types.AttributeValue{
			"no version": nil, "version 0": number(0), "a negative version": number(-1), "a version as text": text("1"),
			"a fraction": &types.AttributeValueMemberN{Value: "1.5"},
		} {
			t.Run(name, func(t *testing.T) {
				c, id := s.Config(), user(name)
				s.write(t, id, 1, 1)
				s.change(t, c.Tables.Snapshot, s.keyOf(id, 0), item{c.Classic.Attributes.Version: version})

				_, err := s.Head(t.Context(), id)
				_, appendErr := s.Append(t.Context(), storage.Commit{Aggregate: id, Expected: 1, Events: events(2, 1)})

				for _, err := range []error{err, appendErr} {
					var corrupt *journal.CorruptItemError
					require.ErrorAs(t, err, new(*journal.CorruptItemError))
					require.ErrorAs(t, err, &corrupt)
					assert.Equal(t, journal.CorruptItemError{
						Aggregate: id, Table: c.Tables.Snapshot,
						PartitionKey: storage.ShardKey(id.Type, s.Shard(id)), SortKey: id.String() + "-0",
						Reason: fmt.Sprintf("has no version from 1 on in %s", c.Classic.Attributes.Version),
					}, *corrupt)
				}
				assert.Empty(t, s.get(t, c.Tables.Journal, s.keyOf(id, 2)))
			})
		}
	})
}

// Another program may use ids that leave no room for our keys. One of them must not prevent reading
// the rest.
func TestAnAggregateWhoseIDIsTooLongForUsIsNamedAndTheRestIsRead(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		long := aggregate.ID{Type: "user-account", Value: strings.Repeat("x", 1_005)}
		var fine aggregate.ID
		for n := 0; fine == (aggregate.ID{}) || s.Shard(fine) != s.Shard(long); n++ {
			fine = user(fmt.Sprint(n))
		}
		s.write(t, fine, 1, 1)
		s.put(t, s.Config().Tables.Journal, s.foreignEvent(long, 1, text("theirs"), 1_600_000_000_000))
		head := s.keyOf(long, 0)
		a := s.Engine.Config.Attributes
		head[a.AggregateID], head[a.SequenceNumber], head[a.Version] = text(long.String()), number(0), number(1)
		s.put(t, s.Config().Tables.Snapshot, head)

		var corrupt []*journal.CorruptItemError
		heads := s.heads(t, journal.HeadsQuery{Corrupt: func(err *journal.CorruptItemError) { corrupt = append(corrupt, err) }})
		require.Len(t, heads, 1)
		assert.Equal(t, fine, heads[0].Aggregate)
		require.Len(t, corrupt, 1)
		assert.Equal(t, long, corrupt[0].Aggregate)
		require.ErrorContains(t, corrupt[0], "1018 bytes: at most 1003")

		page, err := s.TailShard(t.Context(), storage.TailQuery{AggregateType: "user-account", Shard: s.Shard(long)})
		require.NoError(t, err)
		require.Len(t, page.Records, 1)
		assert.Equal(t, fine, page.Records[0].Aggregate)
		require.Len(t, page.Corrupt, 1)
		assert.ErrorContains(t, page.Corrupt[0], "1018 bytes")
	})
}
