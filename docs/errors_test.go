// Package docs checks what the pages say against the code.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestThePageOfErrorsHasEverySentinelOfWhatWrites(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("errors.md")
	require.NoError(t, err)
	words := strings.FieldsFunc(string(page), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, folder := range []string{"../aggregate", "../journal", "../journal/compress", "../journal/encrypt", "../repository", "../journal/archive", "../subscriber/groups", "../subscriber/dedup", "../process", "../projection/readmodel", "../subscriber", "../projection", "../projection/sqlprojection"} {
		names := sentinels(t, folder)
		require.NotEmpty(t, names)
		for _, name := range names {
			if !slices.Contains(words, name) {
				t.Errorf("%s.%s: was anything written, and what is to be done?", strings.TrimPrefix(folder, "../"), name)
			}
		}
	}
}

// sentinels are the exported variables whose names begin with Err.
func sentinels(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		if !isSource(entry) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+entry.Name(), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
				names = append(names, spec.Names[0].Name)
			}
			return true
		})
	}
	return names
}

func isSource(entry fs.DirEntry) bool {
	return strings.HasSuffix(entry.Name(), ".go") && !strings.HasSuffix(entry.Name(), "_test.go")
}
