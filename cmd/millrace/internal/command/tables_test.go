package command_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// setupApp is setup with the tables of an application with the prefix "shop-".
func setupApp(t *testing.T) *shell {
	t.Helper()
	s := setup(t)
	_, err := millrace.Open(t.Context(), s.client, millrace.Config{Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2}})
	require.NoError(t, err)
	require.NoError(t, process.CreateTable(t.Context(), s.client, "shop-process"))
	require.NoError(t, readmodel.CreateTable(t.Context(), s.client, "shop-readmodel"))
	return s
}

func (s *shell) setenv(name, value string) {
	s.env.Getenv = func(asked string) string { return map[string]string{name: value}[asked] }
}

func TestThePrefixOfAnApplicationBeginsAllNames(t *testing.T) {
	t.Parallel()
	s := setupApp(t)
	commands := []string{"describe", "topics", "groups", "model", "process list", "process list --open", "verify"}
	for _, line := range commands {
		s.ok(t, append([]string{"--prefix", "shop-"}, strings.Fields(line)...)...)
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		assert.Contains(t, o.err, "--prefix or $MILLRACE_PREFIX", line)
		assert.Contains(t, o.err, "-table", line)
	}
	s.setenv("MILLRACE_PREFIX", " shop-\n")
	for _, line := range commands {
		s.ok(t, strings.Fields(line)...)
	}
	assert.Regexp(t, `(?m)^snapshot +shop-snapshot `, s.ok(t, "describe"))
	o := s.run(t, "process", "list", "--prefix", "")
	assert.Equal(t, command.ExitFailure, o.code, "the flag goes before the variable")
}

func TestAWrongPrefixIsAnsweredWithThosePresent(t *testing.T) {
	t.Parallel()
	s := setupApp(t)
	for _, prefix := range []string{"demo-", ""} {
		_, err := millrace.Open(t.Context(), s.client, millrace.Config{Prefix: prefix, Journal: journal.Config{Layout: journal.Packed, Shards: 2}})
		require.NoError(t, err)
	}
	for line, table := range map[string]string{"groups": "shoop-journal", "describe": "shoop-journal", "model": "shoop-readmodel", "process list": "shoop-process"} {
		o := s.run(t, append([]string{"--prefix", "shoop-"}, strings.Fields(line)...)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		text := strings.Split(strings.TrimSuffix(o.err, "\n"), "\n")
		require.Len(t, text, 2, "%s: %s", line, o.err)
		assert.Regexp(t, `^millrace: [a-z ]+: table or index missing: "`+table+`"$`, text[0], line)
		assert.Regexp(t, `^Prefixes of journals in the DynamoDB at http://[a-z0-9.:]+: "" \(no prefix\), "demo-", "shop-"\. `+
			`Set --prefix or \$MILLRACE_PREFIX, or whole names with the flags that end with -table\.$`, text[1], line)
	}
	o := s.run(t, "--prefix", "demo-", "model")
	assert.Contains(t, o.err, "Programs create the table")
	assert.NotContains(t, o.err, "Prefixes of journals")
}

func TestAMissingIndexIsExplained(t *testing.T) {
	t.Parallel()
	// DynamoDB Local has another text while it deletes an index.
	s, client := setup(t), dynamotest.New(t).Client()
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return client, nil }
	s.ok(t, "create", "--layout", "classic", "--shards", "1")
	_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: aws.String("journal"), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("journal-tail-index")}},
		},
	})
	require.NoError(t, err)
	o := s.run(t, "tail", "account")
	assert.Regexp(t, `^millrace: .*table or index missing: "journal" lacks an index\n`, o.err)
	assert.Contains(t, o.err, "`millrace create --layout packed` creates the tables. It also reports an index that is missing.")
}

func TestATableThatAFlagNamesHasNoPrefix(t *testing.T) {
	t.Parallel()
	s := setupApp(t)
	const all = "--journal-table shop-journal --snapshot-table shop-snapshot --checkpoint-table shop-checkpoint --model-table shop-readmodel --process-table shop-process"
	for _, line := range []string{"describe", "groups", "model", "process list", "verify", "tail order --since 1s"} {
		o := s.run(t, strings.Fields("--prefix other- "+all+" "+line)...)
		assert.NotContains(t, o.err, "other-", "each command takes all flags: %s", line)
		assert.NotEqual(t, command.ExitUsage, o.code, line)
	}
	assert.Contains(t, s.run(t, strings.Fields("--prefix other- describe --process-table shop-process")...).err, `"other-journal"`)
}

func TestTablesAreCreatedWithThePrefix(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.setenv("MILLRACE_PREFIX", "shop-")
	out := s.ok(t, "create", "--layout", "packed", "--shards", "2")
	for _, table := range []string{"journal", "snapshot", "checkpoint"} {
		assert.Regexp(t, `(?m)^`+table+` +shop-`+table+` +ACTIVE`, out)
	}
	assert.Equal(t, out, s.ok(t, "create"), "again")
	app, err := millrace.Open(t.Context(), s.client, millrace.Config{Prefix: "shop-", ExistingTables: true})
	require.NoError(t, err)
	assert.Equal(t, journal.Packed, app.Journal().Config().Layout)
}

func TestARestoreUnderANewPrefixAsksForTheSnapshotTable(t *testing.T) {
	t.Parallel()
	s := setupApp(t)
	require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{
		Layout: journal.Packed, Shards: 2, Tables: journal.Tables{Journal: "copy-journal", Snapshot: "copy-snapshot", Checkpoint: "copy-checkpoint"},
	}))
	copyItems(t, s.client, "shop-journal", "copy-journal")

	o := s.run(t, "restored", "--prefix", "copy-")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, `the journal's snapshot table is "shop-snapshot", and with the prefix "copy-" it would be "copy-snapshot"`)
	assert.Contains(t, s.ok(t, "describe", "--prefix", "copy-"), "shop-snapshot", "nothing was done")
	assert.Regexp(t, `(?m)^its snapshots +copy-snapshot$`, s.ok(t, "restored", "--prefix", "copy-", "--snapshot-table", "copy-snapshot"))
	assert.Regexp(t, `(?m)^its snapshots +copy-snapshot$`, s.ok(t, "restored", "--prefix", "copy-"))
}

func TestAPrefixThatNoTableCanHaveIsWrongUsage(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, line := range []string{"describe", "create", "groups"} {
		o := s.run(t, append(strings.Fields(line), "--prefix", "a b")...)
		assert.Equal(t, command.ExitUsage, o.code, "%s: %s", line, o.err)
	}
}
