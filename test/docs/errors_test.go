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

func TestThePageOfErrorsHasEveryErrorOfWhatWrites(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("reference/errors.md")
	require.NoError(t, err)
	words := strings.FieldsFunc(string(page), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, folder := range []string{"../aggregate", "../command", "../journal", "../journal/compress", "../journal/encrypt", "../repository", "../journal/archive", "../subscriber/groups", "../subscriber/dedup", "../process", "../projection/readmodel", "../subscriber", "../projection", "../projection/sqlprojection", "../publisher", "../live", "../console", "../catalogue"} {
		names := errorsOf(t, folder)
		require.NotEmpty(t, names, folder)
		for _, name := range names {
			// A type may be described together with its sentinel.
			sentinel := "Err" + strings.TrimSuffix(name, "Error")
			isDescribed := slices.Contains(words, name) ||
				slices.Contains(names, sentinel) && slices.Contains(words, sentinel)
			if !isDescribed {
				t.Errorf("%s.%s: was anything written, and what is to be done?", strings.TrimPrefix(folder, "../"), name)
			}
		}
	}
}

// errorsOf returns the exported variables whose names begin with Err, and the exported types whose
// names end in Error.
func errorsOf(t *testing.T, folder string) (names []string) {
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
			switch spec := n.(type) {
			case *ast.ValueSpec:
				if name := spec.Names[0].Name; strings.HasPrefix(name, "Err") {
					names = append(names, name)
				}
			case *ast.TypeSpec:
				if name := spec.Name.Name; strings.HasSuffix(name, "Error") && spec.Name.IsExported() {
					names = append(names, name)
				}
			}
			return true
		})
	}
	return names
}

func isSource(entry fs.DirEntry) bool {
	return strings.HasSuffix(entry.Name(), ".go") && !strings.HasSuffix(entry.Name(), "_test.go")
}
