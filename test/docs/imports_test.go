package docs

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// imports are the rules of design/README.md. A name with /... includes the packages below.
var imports = []struct{ about, of, refused, except string }{
	{"the leaf needs no other package of the journal", "journal/journaltype", "journal/... repository publisher subscriber/... internal/...", "internal/dynamo internal/printable internal/units internal/carried internal/retry"},
	{"storage is plain data", "internal/storage", "internal/... journal", "internal/dynamo internal/printable internal/units internal/carried internal/retry"},
	{"table does not know how events are stored", "internal/table", "internal/engine journal journal/internal/...", ""},
	{"the engine knows no layout", "internal/engine", "journal journal/internal/... internal/layouttest", ""},
	{"layouts do not know each other", "journal/internal/packed", "journal journal/internal/classic", ""},
	{"layouts do not know each other", "journal/internal/classic", "journal journal/internal/packed", ""},
	{"the sequencer makes no requests", "subscriber/internal/sequence", "journal internal/... subscriber/...", "internal/storage internal/dynamo internal/printable internal/units internal/carried internal/retry"},
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

// importers are the only packages that may import a package. Of is a part of its path.
var importers = []struct{ about, of, by string }{
	// Also below journal, where the compiler allows it.
	{"only the journal joins its layouts", module + "/journal/internal/", "journal"},
	{"programs do not compile it", "github.com/google/go-cmp/", "internal/diff"},
	{"programs do not compile go-cmp", module + "/internal/diff", "internal/trial aggregate/aggregatetest process/processtest"},
	{"programs do not compile go-cmp", module + "/internal/trial", "aggregate/aggregatetest process/processtest"},
	{"it is for tests", module + "/aggregate/aggregatetest", ""},
	{"it is for tests", module + "/process/processtest", ""},
	{"applications call it", module + "/catalogue", "console catalogue/cataloguetest"},
	{"it is for tests", module + "/catalogue/cataloguetest", ""},
	{"programs do not compile it", "github.com/google/jsonschema-go/", ""},
}

func TestPackagesForAFewAreImportedByThem(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	command.Dir = ".." // the root: the tests of this package run in docs
	listed, err := command.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(listed)) {
		name, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, rule := range importers {
			if !isAmong(strings.TrimPrefix(name, module+"/"), rule.by) {
				assert.NotContains(t, imported, rule.of, "%s: %s", name, rule.about)
			}
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

// TestPackagesStaySmall limits the files of the packages that were hard to read when they were one.
func TestPackagesStaySmall(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"journal", "internal/engine", "journal/internal/packed", "journal/internal/classic", "subscriber"} {
		files, err := filepath.Glob("../" + folder + "/*.go")
		require.NoError(t, err)
		files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		assert.NotEmpty(t, files, folder)
		assert.LessOrEqual(t, len(files), 30, "%s: join files, or make a package of some", folder)
	}
}
