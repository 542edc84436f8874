package command_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// An id can hold whatever a visitor of an application has typed.
const odd = "7\x1b[2J\nmillrace: all is well\u009b31m\u202egnp\u007f"

func TestNoCommandShowsAnIDThatSteersTheTerminal(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account(odd), 1, 3)
	folder := t.TempDir()
	archive := filepath.Join(folder, "sound")
	s.ok(t, "export", archive)
	other := setupTables(t)
	deposits(t, other.open(t, journal.Config{}), account(odd), 1, 1) // an event with another time
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("journal"),
		Key:       keyOf(storage.ShardKey("account", j.Internal().Shard(account(odd))), account(odd).String()+"-2"),
	})
	require.NoError(t, err)

	for _, at := range []struct {
		shell *shell
		args  []string
	}{
		{s, []string{"stream", "account", odd}},
		{s, []string{"stream", "account", odd + "8"}},
		{s, []string{"stream", odd, "8"}},
		{s, []string{"aggregates", "account"}},
		{s, []string{"tail", "account"}},
		{s, []string{"verify"}},
		{s, []string{"verify", "--against", archive}},
		{s, []string{"export", filepath.Join(folder, "torn\u202e")}},
		{s, []string{"group", "skip", "billing", "account", odd, "1", "--yes"}},
		{s, []string{"group", "reset", odd, "account", "--yes"}},
		{s, []string{"groups", odd}},
		{s, []string{"group", "catch-up", odd}},
		{s, []string{odd}},
		{other, []string{"import", archive}},
	} {
		for _, form := range [][]string{nil, {"--json"}} {
			args := slices.Concat(at.args, form)
			o := at.shell.run(t, args...)
			shown := o.out + o.err
			assert.NotEmpty(t, shown, "%q", args)
			assert.NotContains(t, shown, "\nmillrace: all is well", "%q", args)
			assert.NotRegexp(t, `[^[:print:]\pL\n]`, shown, "%q", args)
		}
	}
	o := s.run(t, "stream", "account", odd)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, `account-7\x1b[2J\nmillrace: all is well\u009b31m\u202egnp\x7f`)
}

func TestNoEditShowsATopicThatSteersTheTerminal(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	const topic = "acc\u202etnuo" // a topic can hold all characters except control characters
	deposits(t, j, aggregate.ID{Type: topic, Value: "7"}, 1, 3)
	_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: "g", Topic: topic},
		checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), time.Time{}))
	require.NoError(t, err)
	for _, args := range [][]string{
		{"skip", "g", topic, "7", "1", "--yes"},
		{"retry-skipped", "g", topic, "7", "1"},
		{"skip", "g", topic, "7", "2", "--yes"},
		{"forget-skipped", "g", topic, "7", "2"},
		{"reset-aggregate", "g", topic, "7", "1", "--yes"},
		{"unpark", "g", topic, "7"},
	} {
		o := s.run(t, append([]string{"group"}, args...)...)
		assert.NotContains(t, o.out+o.err, "\u202e", "%q", args)
		assert.Contains(t, o.out+o.err, `acc\u202etnuo`, "%q", args)
	}
}
