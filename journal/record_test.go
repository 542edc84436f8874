package journal

import (
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
)

// valueOf returns an attribute of any kind.
func valueOf(kind byte, text string) types.AttributeValue {
	switch kind % 8 {
	case 0:
		return &types.AttributeValueMemberS{Value: text}
	case 1:
		return &types.AttributeValueMemberN{Value: text}
	case 2:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	case 3:
		return &types.AttributeValueMemberM{Value: item{text: &types.AttributeValueMemberS{Value: text}}}
	case 4:
		return &types.AttributeValueMemberM{Value: item{text: &types.AttributeValueMemberNULL{Value: true}}}
	case 5:
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{nil}}
	case 6:
		return &types.AttributeValueMemberB{}
	default:
		return nil
	}
}

// For any item in the table, recordOf returns a record that would be stored as the same item, or an
// error that names the item.
func FuzzRecordOf(f *testing.F) {
	kinds := func(k ...byte) []byte { return k }
	for _, k := range [][]byte{
		kinds(0, 0, 0, 1, 2, 1, 0, 0, 3, 0), kinds(0, 0, 0, 1, 0, 1, 7, 7, 7, 7), kinds(0, 0, 0, 0, 5, 5, 5, 5, 5, 5),
		kinds(7, 7, 7, 7, 7, 7, 7, 7, 7, 7), kinds(0, 0, 0, 1, 6, 1, 2, 2, 4, 2),
	} {
		f.Add(k, "user-account-1", "user-account-x-1", "user-account-x", "1", "payload", "1700000000000", "text")
		f.Add(k, "-", "--1", "-", "01", "", "1e3", "")
		f.Add(k, "a-1", "a-b-18446744073709551615", "a-b", "18446744073709551615", "\xff", "-9223372036854775808", "\x00")
	}
	l := classicOf(engineOf(Config{Shards: 4}))
	f.Fuzz(func(t *testing.T, kinds []byte, partition, sort, aid, number, payload, at, ours string) {
		it := item{}
		for i, attribute := range []struct{ name, text string }{
			{"pkey", partition},
			{"skey", sort},
			{"aid", aid},
			{"seq_nr", number},
			{"payload", payload},
			{"occurred_at", at},
			{attrEventID, ours},
			{attrEventType, ours},
			{metadata.Attribute, ours},
			{attrCommitID, ours},
		} {
			if i < len(kinds) {
				it[attribute.name] = valueOf(kinds[i], attribute.text)
			}
		}

		r, err := l.recordOf(it)
		if err != nil {
			var corrupt *CorruptItemError
			require.ErrorAs(t, err, &corrupt)
			require.Nil(t, r)
			return
		}
		require.NotZero(t, r.Number)
		require.NotEmpty(t, r.EventID)
		require.NotEmpty(t, r.Aggregate.Type)
		require.NotEmpty(t, r.Aggregate.Value)
		require.Equal(t, sort, storage.SortKey(r.Aggregate, r.Number))
		require.Equal(t, aid, r.Aggregate.String())
		require.Positive(t, r.Size())

		// The writer may have chosen another shard than ours.
		again := l.itemOf(r)
		again["pkey"] = it["pkey"]
		r2, err := l.recordOf(again)
		require.NoError(t, err)
		require.Equal(t, r.OccurredAt.UnixMilli(), r2.OccurredAt.UnixMilli())
		r2.OccurredAt = r.OccurredAt
		if len(r.Payload) == 0 {
			r2.Payload = r.Payload
		}
		if len(r.Metadata) == 0 {
			r2.Metadata = r.Metadata
		}
		require.Equal(t, r, r2)
	})
}

func TestNumbersOfAllSizesAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{0, 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		got, ok := uintOf(numberValue(n))
		require.True(t, ok)
		require.Equal(t, n, got)
	}
	for _, n := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		got, ok := intOf(numberValue(n))
		require.True(t, ok)
		require.Equal(t, n, got)
	}
}

func TestDerivedEventIDsOfIDsThatReadTheSameDiffer(t *testing.T) {
	t.Parallel()
	one := derivedEventID(aggregate.ID{Type: "user", Value: "account-x"}, 1)
	other := derivedEventID(aggregate.ID{Type: "user-account", Value: "x"}, 1)
	require.NotEqual(t, one, other)
	require.Equal(t, one, derivedEventID(aggregate.ID{Type: "user", Value: "account-x"}, 1))
}

func TestTimesThatUsersSeeAreInUTC(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 999_999).In(time.FixedZone("east", 3600))
	j := engineOf(Config{Shards: 4, Now: func() time.Time { return now }})

	d, err := j.draft(t.Context(), storage.Commit{Aggregate: aggregate.ID{Type: "order", Value: "1"}, Events: []storage.Event{{}}})

	require.NoError(t, err)
	d.date(j.date())
	require.Equal(t, time.Unix(1, 0).UTC(), d.receipt.OccurredAt)
}

func TestRecordsAreEqualWheneverTheyWereWritten(t *testing.T) {
	t.Parallel()
	a := Record{Aggregate: aggregate.ID{Type: "user", Value: "1"}, Number: 1, OccurredAt: time.UnixMilli(1), WrittenAt: time.UnixMilli(1)}
	b := a
	b.WrittenAt = time.UnixMilli(2)
	assert.True(t, a.Equal(&b), "an event and its copy in another journal")
	b.OccurredAt = time.UnixMilli(2)
	assert.False(t, a.Equal(&b))
}
