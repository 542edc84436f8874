package command_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// A journal that was restored under other names uses its own snapshots.
func TestARestoredJournalGetsItsOwnSnapshotTable(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Layout: layout, Shards: 1}))
			write := func(j *journal.Journal, expected uint64) {
				_, err := j.Internal().Append(t.Context(), storage.Commit{
					Aggregate: aggregate.ID{Type: "account", Value: "1"}, Expected: expected, Events: []storage.Event{{Type: "opened"}},
					Snapshot: &journal.Snapshot{Number: expected + 1, Payload: []byte("{}")},
				})
				require.NoError(t, err)
			}
			write(s.open(t, journal.Config{}), 0)
			copied := journal.Tables{Journal: "journal-2", Snapshot: "snapshot-2"}
			require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Layout: layout, Shards: 1, Tables: copied}))
			copyItems(t, s.client, "journal", copied.Journal)
			copyItems(t, s.client, "snapshot", copied.Snapshot)
			flags := []string{"--journal-table", copied.Journal, "--snapshot-table", copied.Snapshot}
			o := s.run(t, append([]string{"verify"}, flags...)...)
			assert.Contains(t, o.err, "journal.MarkRestored")

			assert.Regexp(t, `(?m)^its snapshots +snapshot-2$`, s.ok(t, append([]string{"restored"}, flags...)...))
			j, err := journal.Open(t.Context(), s.client, journal.Config{Tables: copied})
			require.NoError(t, err)
			write(j, 1)
			assert.Contains(t, s.ok(t, append([]string{"verify"}, flags...)...), "sound")
			assert.Contains(t, s.ok(t, "verify"), "sound")
			assert.Equal(t, []map[string]any{{"kind": "restored", "journal_table": "journal", "snapshot_table": "snapshot"}}, lines(t, s.ok(t, "restored", "--json")))
		})
	}
}

func copyItems(t *testing.T, client *dynamodb.Client, from, to string) {
	t.Helper()
	all, err := client.Scan(context.Background(), &dynamodb.ScanInput{TableName: &from})
	require.NoError(t, err)
	for _, it := range all.Items {
		_, err := client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &to, Item: it})
		require.NoError(t, err)
	}
}
