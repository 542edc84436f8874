package packed

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

func datedFor(keep time.Duration) storage.DatedCommand {
	return storage.DatedCommand{
		Command: storage.Command{ID: "pay", CommitID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", First: 7, Version: 8},
		At:      time.UnixMilli(1_700_000_000_000).UTC(),
		Keep:    keep,
	}
}

func storedCommands(t *testing.T, commands ...storage.DatedCommand) []byte {
	t.Helper()
	value, err := layoutOf().commandsValue(commands) // of a table of the first format
	require.NoError(t, err)
	return value.(*types.AttributeValueMemberB).Value
}

func TestACommandIDIsReadWithItsRetention(t *testing.T) {
	t.Parallel()
	for keep, want := range map[time.Duration]time.Duration{
		0:                       0,
		1:                       time.Second,
		time.Second:             time.Second,
		time.Second + 1:         2 * time.Second,
		30 * 24 * time.Hour:     30 * 24 * time.Hour,
		math.MaxInt64:           time.Duration(math.MaxInt64).Truncate(time.Second),
		math.MaxInt64 - 5:       time.Duration(math.MaxInt64).Truncate(time.Second),
		90*time.Second - 300000: 90 * time.Second,
	} {
		var kept []keptCommand
		require.NoError(t, unmarshalCommands(storedCommands(t, datedFor(keep), datedFor(0)), &kept))
		require.Len(t, kept, 2)
		assert.Equal(t, datedFor(want), kept[0].dated(), keep)
		assert.Equal(t, datedFor(0), kept[1].dated())
	}
}

func TestOnlyACommandIDWithARetentionStoresIt(t *testing.T) {
	t.Parallel()
	forever := storedCommands(t, datedFor(0))
	// The form of every command before ids had a retention of their own.
	withoutEnd, err := cbor.Marshal([]any{[]any{"pay", packID(datedFor(0).CommitID), 7, 8, 1_700_000_000_000}})
	require.NoError(t, err)
	assert.Equal(t, withoutEnd, forever)
	for keep, more := range map[time.Duration]int{time.Hour: 3, 18 * time.Hour: 3, 30 * 24 * time.Hour: 5} {
		assert.Len(t, storedCommands(t, datedFor(keep)), len(forever)+more, keep)
	}

	p := layoutOf()
	item := func(commandID string, keep time.Duration) int {
		p.Config.CommandRetention = keep
		return table.ItemSize(p.commitItem(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("c"), time.UnixMilli(0), commandID))
	}
	assert.Equal(t, item("", 0), item("", time.Hour))
	assert.LessOrEqual(t, item("pay", 30*24*time.Hour), item("pay", 0)+6)
}

func TestACommandIDIsStoredAsADigest(t *testing.T) {
	t.Parallel()
	p := layoutOf()
	p.compresses = true
	long, short := strings.Repeat("x", 512), "pay"
	assert.NotEqual(t, p.stored(long), p.stored(short))
	at := func(commandID string) table.Item {
		return p.commitItem(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("c"), time.UnixMilli(0), commandID)
	}
	assert.Equal(t, table.ItemSize(at(long)), table.ItemSize(at(short)))
	it := at(long)
	it[attrSmall], it[attrCount] = table.BinaryValue([]byte{0x80}), table.NumberValue(1)
	parsed, err := p.parse(it)
	require.NoError(t, err)
	assert.Equal(t, p.stored(long), parsed.command)

	kept := datedFor(time.Hour)
	kept.ID = p.stored(long)
	value, err := p.commandsValue([]storage.DatedCommand{kept})
	require.NoError(t, err)
	var read []keptCommand
	require.NoError(t, unmarshalCommands(value.(*types.AttributeValueMemberB).Value, &read))
	assert.Equal(t, kept, read[0].dated())
	id := aggregate.ID{Type: "a", Value: "b"}
	assert.Equal(t, layoutOf().guardKey(id, long), p.guardKey(id, kept.ID), "both formats have the same guards")
}

func TestDamagedCommandIDsAreRefused(t *testing.T) {
	t.Parallel()
	for name, damaged := range map[string]any{
		"four elements":       []any{"pay", "c", 7, 8},
		"a number as id":      []any{7, "c", 7, 8, 9},
		"a short digest":      []any{[]byte("short"), "c", 7, 8, 9},
		"seven elements":      []any{"pay", "c", 7, 8, 9, 10, 11},
		"no array":            7,
		"a retention below 0": []any{"pay", "c", 7, 8, 9, -1},
		"text as retention":   []any{"pay", "c", 7, 8, 9, "1h"},
	} {
		encoded, err := cbor.Marshal([]any{damaged})
		require.NoError(t, err)
		assert.Error(t, unmarshalCommands(encoded, new([]keptCommand)), name)
	}
}
