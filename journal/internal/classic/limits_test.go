package classic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/layouttest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func TestAnEventOfExactlyTheLimitIsWrittenAndOneByteMoreIsNot(t *testing.T) {
	t.Parallel()
	j := layouttest.Open(t, Kind)
	id := aggregate.ID{Type: "order", Value: "1"}
	size := table.ItemSize(layoutOf(j).itemOf(&journaltype.Record{
		Aggregate: id, Number: 1, EventType: "large", OccurredAt: time.Now(), CommitID: strings.Repeat("c", 36),
	}))

	_, err := j.Append(t.Context(), storage.Commit{Aggregate: id, Events: []storage.Event{{Type: "large", Payload: make([]byte, storage.MaxItemBytes-size)}}})
	require.NoError(t, err)

	_, err = j.Append(t.Context(), storage.Commit{Aggregate: id, Expected: 1, Events: []storage.Event{{Type: "large", Payload: make([]byte, storage.MaxItemBytes-size+1)}}})
	var large *journaltype.TooLargeError
	require.ErrorAs(t, err, &large)
	assert.Equal(t, journaltype.TooLargeError{ID: id, What: `event 1 of the commit, "large",`, Size: storage.MaxItemBytes + 1, Limit: storage.MaxItemBytes, Unit: "bytes"}, *large)
}

// A write unit is a started KB. An item that fills KBs exactly by our count would cost one more
// unit if DynamoDB counted a single byte more.
func TestItemSizeIsNotLessThanDynamoDBCounts(t *testing.T) {
	t.Parallel()
	j := layouttest.Open(t, Kind)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		for n := range 40 {
			slack := n % 2 * 48
			it := layoutOf(j).itemOf(randomRecord(r))
			payload := it["payload"].(*types.AttributeValueMemberB)
			payload.Value = make([]byte, len(payload.Value)+1024-table.ItemSize(it)%1024+slack)

			out, err := j.Client.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: &j.Config.Tables.Journal, Item: it, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
			})

			require.NoError(t, err)
			size, units := table.ItemSize(it), int(*out.ConsumedCapacity.Table.CapacityUnits)
			if slack == 0 {
				assert.LessOrEqual(t, units, size/1024, "seed %d, table.Item %d of %d bytes by our count: %s", seed, n, size, dump(it))
			} else {
				assert.Greater(t, units, size/1024, "seed %d, table.Item %d: our count of %d bytes is far too high: %s", seed, n, size, dump(it))
			}
		}
	}
}

func randomRecord(r *rand.Rand) *journaltype.Record {
	letters := []rune("abcäß€😀")
	text := func(most int) string {
		s := make([]rune, r.IntN(most))
		for i := range s {
			s[i] = letters[r.IntN(len(letters))]
		}
		return string(s)
	}
	record := &journaltype.Record{
		Aggregate: aggregate.ID{Type: "t" + text(20), Value: "v" + text(60)},
		Number:    r.Uint64() >> r.IntN(64), EventID: text(40), EventType: text(40),
		OccurredAt: time.UnixMilli(r.Int64() >> r.IntN(64)), CommitID: text(36), Payload: make([]byte, r.IntN(5_000)),
	}
	for range r.IntN(5) {
		if record.Metadata == nil {
			record.Metadata = aggregate.Metadata{}
		}
		record.Metadata["k"+text(20)] = text(100)
	}
	return record
}

func dump(it table.Item) string {
	text := ""
	for name, value := range it {
		if name != "payload" {
			text += fmt.Sprintf(" %s=%+v", name, value)
		}
	}
	return text
}
