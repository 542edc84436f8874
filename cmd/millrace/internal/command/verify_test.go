package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// loseEvents deletes rows behind the journal's back.
func loseEvents(t *testing.T, s *shell, j *journal.Journal, id string, numbers ...string) {
	t.Helper()
	for _, n := range numbers {
		_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String("journal"), Key: keyOf(storage.ShardKey("account", j.Internal().Shard(account(id))), "account-"+id+"-"+n),
		})
		require.NoError(t, err)
	}
}

func TestVerifyOfASoundJournalSaysSo(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	deposits(t, s.open(t, journal.Config{}), account("1"), 1, 9)
	assert.Equal(t, "1 aggregate, 9 events: sound\n", s.ok(t, "verify"))
}

func TestVerifyShowsFaultsAndExitsWithOne(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 9)
	deposits(t, j, account("2"), 1, 9)
	loseEvents(t, s, j, "1", "4", "5", "9")

	o := s.run(t, "verify")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "verification found faults: 2 faults")
	table, result, found := strings.Cut(o.out, "2 aggregates, ")
	require.True(t, found, "the result must follow: %s", o.out)
	assert.Contains(t, result, ": 2 faults\n")
	rows := cells(t, table)
	require.Len(t, rows, 2)
	assert.Equal(t, "missing", rows[0]["FAULT"])
	assert.Equal(t, "account 1", rows[0]["AGGREGATE"])
	assert.Equal(t, "4 to 5", rows[0]["EVENTS"])
	assert.Equal(t, "9", rows[1]["EVENTS"])

	o = s.run(t, "verify", "--json")
	assert.Equal(t, command.ExitFailure, o.code)
	objects := lines(t, o.out)
	require.Len(t, objects, 3)
	assert.Equal(t, "fault", objects[0]["kind"])
	assert.InDelta(t, 5, objects[0]["to"], 0)
	assert.Equal(t, map[string]any{"kind": "report", "aggregates": 2.0, "events": 15.0, "faults": 2.0, "complete": true}, objects[2])

	assert.Equal(t, command.ExitOK, s.run(t, "verify", "--type", "account", "--id", "2").code, "the other is sound")
}

func TestVerifyComparesWithAnArchive(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 9)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)

	assert.Equal(t, "1 aggregate, 9 events: sound\n", s.ok(t, "verify", "--against", file))
	loseEvents(t, s, j, "1", "3")
	o := s.run(t, "verify", "--against", file)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Regexp(t, `(?m)^unreadable +account 1 +3 .* is missing`, o.out)
}

func TestVerifyOfAnArchiveNeedsNoDatabase(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	deposits(t, s.open(t, journal.Config{}), account("1"), 1, 9)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)

	nowhere := &shell{env: s.env}
	nowhere.env.Connect = nil
	assert.Equal(t, "1 aggregate, 9 events: sound\n", nowhere.ok(t, "verify", "--archive", file))
	nowhere.env.In = strings.NewReader(string(text[:len(text)-10]))
	o := nowhere.run(t, "verify", "--archive", "-")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.out, "archive is torn")
}
