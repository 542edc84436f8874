package journal_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// The items are what every member of the event-store-adapter family reads, and some attributes
// more.
func TestACommitWritesItemsToTheLetterOfTheSchema(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, a := s.Config(), s.Config().Attributes
		receipt, err := s.Append(t.Context(), eventlog.Commit{
			Aggregate: user("1"),
			Events: []eventlog.Event{
				{ID: "event-1", Type: "registered", Payload: []byte(`{"name":"Ann"}`), Metadata: aggregate.Metadata{"tenant": "t1", "empty": ""}},
				{Payload: []byte{0, 0xff}},
			},
			Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		})
		require.NoError(t, err)

		assert.Equal(t, item{
			a.PartitionKey:   text("user-account-1"), // 1 is the shard, see TestFNV1a...
			a.SortKey:        text("user-account-1-1"),
			a.AggregateID:    text("user-account-1"),
			a.SequenceNumber: number(1),
			a.Payload:        binary(`{"name":"Ann"}`),
			a.OccurredAt:     number(1_700_000_000_000),
			"event_id":       text("event-1"),
			"event_type":     text("registered"),
			"metadata":       &types.AttributeValueMemberM{Value: item{"tenant": text("t1"), "empty": text("")}},
			"commit_id":      text(receipt.CommitID),
		}, s.get(t, c.Tables.Journal, s.key("user-account-1", "user-account-1-1")))

		assert.Equal(t, item{
			a.PartitionKey:   text("user-account-1"),
			a.SortKey:        text("user-account-1-2"),
			a.AggregateID:    text("user-account-1"),
			a.SequenceNumber: number(2),
			a.Payload:        binary("\x00\xff"),
			a.OccurredAt:     number(1_700_000_000_000),
			"commit_id":      text(receipt.CommitID),
		}, s.get(t, c.Tables.Journal, s.key("user-account-1", "user-account-1-2")))

		sum := sha256.Sum256([]byte("state"))
		assert.Equal(t, item{
			a.PartitionKey:    text("user-account-1"),
			a.SortKey:         text("user-account-1-0"),
			a.AggregateID:     text("user-account-1"),
			a.SequenceNumber:  number(0),
			a.Version:         number(2),
			a.TTL:             number(0),
			a.Payload:         binary("state"),
			"snapshot_seq_nr": number(2),
			"snapshot_digest": binary(string(sum[:16])),
			"snapshot_schema": number(0),
		}, s.get(t, c.Tables.Snapshot, s.key("user-account-1", "user-account-1-0")))
	})
}

func TestALaterCommitMovesTheVersionAndLeavesTheRestOfTheHead(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, a := s.Config(), s.Config().Attributes
		head := s.keyOf(user("1"), 0)
		_, err := s.Append(t.Context(), eventlog.Commit{
			Aggregate: user("1"), Events: events(1, 1), Snapshot: &journal.Snapshot{Number: 1, Payload: []byte("state")},
		})
		require.NoError(t, err)
		s.change(t, c.Tables.Snapshot, head, item{"last_updated_at": number(5)}) // as a foreign writer does
		want := s.get(t, c.Tables.Snapshot, head)

		s.write(t, user("1"), 2, 3)

		want[a.Version] = number(4)
		assert.Equal(t, want, s.get(t, c.Tables.Snapshot, head))
	})
}

func TestAnAggregateOfTheSchemaDocumentLiesWhereTheDocumentSays(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("01H42K4ABWQ5V2XQEP3A48VE0Z"), 1, 1)

		it := s.get(t, s.Config().Tables.Journal, s.key("user-account-3", "user-account-01H42K4ABWQ5V2XQEP3A48VE0Z-1"))

		assert.Equal(t, text("user-account-01H42K4ABWQ5V2XQEP3A48VE0Z"), it[s.Config().Attributes.AggregateID])
	})
}

func TestARecordIsWhatWasAppended(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for _, event := range []eventlog.Event{
			{ID: "event-1", Type: "registered", Payload: []byte("\x00payload\xff"), Metadata: aggregate.Metadata{"tenant": "müller", "empty": ""}},
			{ID: "event-2", Payload: []byte{}},
		} {
			id := user(event.ID)
			receipt, err := s.Append(t.Context(), eventlog.Commit{Aggregate: id, Events: []eventlog.Event{event}})
			require.NoError(t, err)

			records, err := read(t, s.Log, id, 1, 1)

			require.NoError(t, err)
			assert.Equal(t, []*journal.Record{{
				Aggregate: id, Number: 1, EventID: event.ID, EventType: event.Type, Payload: event.Payload, Metadata: event.Metadata,
				OccurredAt: receipt.OccurredAt, WrittenAt: receipt.OccurredAt, CommitID: receipt.CommitID,
			}}, records)
			assert.Equal(t, time.UnixMilli(1_700_000_000_000).UTC(), receipt.OccurredAt)
		}
	})
}

func TestANilPayloadIsStoredAsAnEmptyOne(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("1"), Events: []eventlog.Event{{}}, Snapshot: &journal.Snapshot{Number: 1}})
		require.NoError(t, err)

		records, err := read(t, s.Log, user("1"), 1, 1)
		require.NoError(t, err)
		assert.Equal(t, []byte{}, records[0].Payload)
		head, err := s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.Equal(t, &journal.Snapshot{Number: 1, Payload: []byte{}}, head.Snapshot)
	})
}

// "user" + "account-x" and "user-account" + "x" have one aid, one entry in the aggregate index and
// the same sort keys; only the partition tells them apart.
func TestAggregatesWhoseIDsReadTheSameKeepTheirOwnEvents(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		one, other := aggregate.ID{Type: "user", Value: "account-x"}, aggregate.ID{Type: "user-account", Value: "x"}
		require.Equal(t, one.String(), other.String())
		// Written in turns, so that their places in the index alternate.
		for n := range 12 {
			for _, id := range []aggregate.ID{one, other} {
				_, err := s.Append(t.Context(), eventlog.Commit{
					Aggregate: id, Expected: uint64(n), Events: []eventlog.Event{{Payload: []byte(id.Type)}},
				})
				require.NoError(t, err)
			}
		}

		ids := map[string]bool{}
		for _, id := range []aggregate.ID{one, other} {
			for name, to := range map[string]uint64{"by index": 12, "by key": 3} {
				records, err := read(t, s.Log, id, 1, to)
				require.NoError(t, err, name)
				require.Len(t, records, int(to), name)
				for _, r := range records {
					assert.Equal(t, id, r.Aggregate, name)
					assert.Equal(t, id.Type, string(r.Payload), name)
					ids[r.EventID] = true
				}
			}
			head, err := s.Head(t.Context(), id)
			require.NoError(t, err)
			assert.EqualValues(t, 12, head.Version)
		}
		assert.Len(t, ids, 24, "derived event ids are different too")
	})
}

func TestRecordSizeIsCloseToTheItem(t *testing.T) {
	t.Parallel()
	small := journal.Record{Aggregate: user("1")}
	large := journal.Record{Aggregate: user("1"), Payload: make([]byte, 1_000), Metadata: aggregate.Metadata{"key": "value"}}
	assert.Equal(t, small.Size()+1_000+len("keyvalue"), large.Size())
}
