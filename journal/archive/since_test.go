package archive_test

import (
	"bytes"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// A second archive has only the events that were written since the first one.
func TestAnArchiveOfWhatIsNewFollowsAnother(t *testing.T) {
	t.Parallel()
	db, to := dynamotest.New(t), dynamotest.New(t)
	open := func(db *dynamotest.DB, layout journal.Layout) *journal.Journal {
		config := journal.Config{Layout: layout, Shards: 3, Now: db.Clock().Now}
		return testjournal.New(t, db.Client(), config)
	}
	from, target := open(db, journal.Classic), open(to, journal.Packed)
	write := func(id string, expected uint64) {
		testjournal.Append(t, from, storage.Commit{
			Aggregate: aggregate.ID{Type: "order", Value: id}, Expected: expected, Events: []storage.Event{{Type: "placed", Payload: []byte("x")}},
		})
	}
	move := func(o archive.ExportOptions) (exported archive.Progress, imported archive.ImportProgress) {
		var file bytes.Buffer
		exported, err := archive.Export(t.Context(), from, &file, o)
		require.NoError(t, err)
		imported, err = archive.Import(t.Context(), target, &file, archive.ImportOptions{})
		require.NoError(t, err)
		return exported, imported
	}
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		write(id, 0)
	}
	move(archive.ExportOptions{})
	db.Clock().Advance(2 * time.Hour)
	since := db.Clock().Now().Add(-time.Minute)
	write("2", 1)
	write("2", 2)
	write("6", 0)

	exported, imported := move(archive.ExportOptions{Only: archive.Selection{AggregateType: "order"}, Since: since})
	assert.EqualValues(t, 2, exported.Aggregates)
	assert.EqualValues(t, 1, imported.Present)
	for head, err := range from.Heads(t.Context(), journal.HeadsQuery{}) {
		require.NoError(t, err)
		version, err := target.Version(t.Context(), head.Aggregate)
		require.NoError(t, err)
		assert.Equal(t, head.Version, version)
	}
	_, err := archive.Export(t.Context(), from, &bytes.Buffer{}, archive.ExportOptions{Since: since})
	require.ErrorIs(t, err, archive.ErrInvalidOptions)
}

// An archive of new events names an aggregate that cannot be read, and has the others.
func TestAnArchiveOfWhatIsNewGoesOnBehindAnItemThatCannotBeRead(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		config := journal.Config{Layout: layout, Shards: 1}
		j := testjournal.New(t, db.Client(), config)
		for n := range 10 {
			testjournal.Append(t, j, storage.Commit{
				Aggregate: aggregate.ID{Type: "order", Value: strconv.Itoa(n)}, Events: []storage.Event{{Type: "placed", Payload: []byte("x")}},
			})
		}
		damage(t, db, layout)
		leftOut := 0
		exported, err := archive.Export(t.Context(), j, io.Discard, archive.ExportOptions{
			Only: archive.Selection{AggregateType: "order"}, Since: time.Now().Add(-time.Hour),
			Unreadable: func(aggregate.ID, error) error {
				leftOut++
				return nil
			},
		})
		require.NoError(t, err)
		assert.EqualValues(t, 9, exported.Aggregates)
		assert.Equal(t, 1, leftOut)
	})
}

// damage makes the event of order 3 unreadable.
func damage(t *testing.T, db *dynamotest.DB, layout journal.Layout) {
	t.Helper()
	items, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("journal")})
	require.NoError(t, err)
	partition, broken := "order/3", "c"
	for _, it := range items.Items {
		if layout == journal.Classic {
			partition, broken = "order-3", "seq_nr"
		}
		key, ok := it["pkey"].(*types.AttributeValueMemberS)
		if aid, classic := it["aid"].(*types.AttributeValueMemberS); classic {
			key, ok = aid, true
		}
		if !ok || key.Value != partition {
			continue
		}
		it[broken] = &types.AttributeValueMemberBOOL{Value: true}
		_, err := db.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: it})
		if layout == journal.Classic && err != nil { // it is a key of an index
			it[broken] = &types.AttributeValueMemberN{Value: "0"}
			_, err = db.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: it})
		}
		require.NoError(t, err)
		return
	}
	require.Fail(t, "there is no such event")
}
