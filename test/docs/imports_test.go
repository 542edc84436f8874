package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// imports are the rules of design/README.md. A name with /... includes the packages below.
var imports = []struct{ about, of, refused, except string }{
	{"the leaf needs no other package of the journal", "journal/journaltype", "journal/... repository publisher subscriber/... internal/...", "internal/dynamo internal/printable internal/units internal/carried"},
	{"storage is plain data", "internal/storage", "internal/... journal", "internal/dynamo internal/printable internal/units internal/carried"},
	{"table does not know how events are stored", "internal/table", "internal/engine journal journal/internal/...", ""},
	{"the engine knows no layout", "internal/engine", "journal journal/internal/... internal/layouttest", ""},
	{"layouts do not know each other", "journal/internal/packed", "journal journal/internal/classic", ""},
	{"layouts do not know each other", "journal/internal/classic", "journal journal/internal/packed", ""},
	{"the sequencer makes no requests", "subscriber/internal/sequence", "journal internal/... subscriber/...", "internal/storage internal/dynamo internal/printable internal/units internal/carried"},
	{"the pool serves anything", "subscriber/internal/lanes", "aggregate journal/... internal/... subscriber/...", ""},
	{"a source does not know who owns its shard", "subscriber/internal/source", "subscriber/internal/membership subscriber/internal/lanes", ""},
	{"a member does not know what it works on", "subscriber/internal/membership", "subscriber/internal/source subscriber/internal/sequence subscriber/internal/lanes", ""},
	{"the domain is pure", "aggregate", "journal/... internal/... repository github.com/aws/... github.com/ThreeDotsLabs/...", "internal/printable internal/carried"},
	{"the journal does not need Watermill", "journal", "github.com/ThreeDotsLabs/... repository publisher subscriber/...", ""},
}

// TestImportsFollowTheDesign compares all packages that a package imports, also indirectly.
func TestImportsFollowTheDesign(t *testing.T) {
	t.Parallel()
	for _, rule := range imports {
		listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/"+rule.of).Output()
		require.NoError(t, err)
		for name := range strings.FieldsSeq(string(listed)) {
			own, ours := strings.CutPrefix(name, module+"/")
			if !ours && !strings.Contains(name, ".") {
				continue // of the standard library
			}
			refused := own != rule.of && isAmong(own, rule.refused) && !isAmong(own, rule.except)
			assert.False(t, refused, "%s imports %s: %s", rule.of, name, rule.about)
		}
	}
}

// TestOnlyTheJournalImportsItsLayouts also holds for packages in folders below journal, for which
// the compiler would allow it.
func TestOnlyTheJournalImportsItsLayouts(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	command.Dir = ".." // the root: the tests of this package run in docs
	listed, err := command.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(listed)) {
		name, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != module+"/journal" {
			assert.NotContains(t, imported, module+"/journal/internal/", name)
		}
	}
}

func isAmong(name, patterns string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		folder, below := strings.CutSuffix(pattern, "/...")
		if name == folder || below && strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}
