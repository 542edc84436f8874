package command_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
)

func TestCommandsWorkOnTablesOfThePackedLayout(t *testing.T) {
	t.Parallel()
	s := setup(t)
	assert.Regexp(t, `(?m)^layout +packed$`, s.ok(t, "create", "--layout", "packed", "--shards", "4"))
	assert.Regexp(t, `(?m)^layout +packed$`, s.ok(t, "create"), "it verifies the tables")
	o := s.run(t, "create", "--layout", "classic")
	assert.NotEqual(t, command.ExitOK, o.code, "the layout never changes")
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 3)
	deposits(t, j, account("1"), 4, 9)
	deposits(t, j, account("2"), 1, 2)

	assert.Contains(t, s.ok(t, "topics"), "account")
	rows := cells(t, s.ok(t, "aggregates", "account"))
	require.Len(t, rows, 2)
	assert.Len(t, lines(t, s.ok(t, "stream", "account", "1", "--json")), 1+9, "the head and its events")
	assert.Len(t, lines(t, s.ok(t, "tail", "account", "--json")), 11)
	assert.Equal(t, "2 aggregates, 11 events: sound\n", s.ok(t, "verify"))

	file := filepath.Join(t.TempDir(), "backup.jsonl")
	assert.Contains(t, s.ok(t, "export", file), "exported 2 aggregates, 11 events")
	for _, layout := range []string{"classic", "packed"} {
		other := setup(t)
		other.ok(t, "create", "--shards", "7", "--layout", layout)
		assert.Contains(t, other.ok(t, "import", file), "imported 2 aggregates, 11 events")
		assert.Contains(t, other.ok(t, "import", file), "11 events already present")
		assert.Equal(t, "2 aggregates, 11 events: sound\n", other.ok(t, "verify", "--against", file))
	}
}

func TestTheHelpOfCreateNamesTheLayouts(t *testing.T) {
	t.Parallel()
	help := strings.Join(strings.Fields(setup(t).ok(t, "create", "--help")), " ")
	assert.Contains(t, help, "packed, which costs less and is for new applications, or classic, which event-store-adapter programs can share; new tables need it, and it never changes")
}
