package command_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
)

func TestTheTailOfAPackedJournalGrows(t *testing.T) {
	t.Parallel()
	s := setup(t)
	require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Layout: journal.Packed, Shards: 4}))
	assert.Regexp(t, `(?m)^partitions of the tail +4$`, s.ok(t, "shards"))

	out := s.ok(t, "shards", "--to", "16")
	assert.Regexp(t, `(?m)^partitions of the tail +16$`, out)
	assert.Regexp(t, `(?m)^used by writers from +20`, out)
	partitions, err := s.open(t, journal.Config{}).TailPartitions(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 16, partitions)

	o := s.run(t, "shards", "--to", "24")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "times a power of two")
	objects := lines(t, s.ok(t, "shards", "--json"))
	assert.Equal(t, []map[string]any{{"kind": "shards", "shards": 4.0, "tail_partitions": 16.0}}, objects)
}

func TestTheTailOfAClassicJournalDoesNotGrow(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	o := s.run(t, "shards", "--to", "16")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "Classic")
}
