package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoExampleImportsAnInternalPackage(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	for _, root := range []string{"..", "../test/sqlsuite"} {
		for _, name := range exampleFiles(t, root) {
			file, err := parser.ParseFile(fset, name, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				if target, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(target, module+"/internal/") {
					t.Errorf("%s imports %s, so a reader cannot copy it", fset.Position(spec.Pos()), target)
				}
			}
		}
	}
}

// exampleFiles returns the example files of the packages that programs import.
func exampleFiles(t *testing.T, root string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && notPublic(entry) {
			return filepath.SkipDir
		}
		if ok, _ := filepath.Match("example_*test.go", entry.Name()); ok {
			files = append(files, name)
		}
		return nil
	}))
	require.NotEmpty(t, files)
	return files
}

// The table of features names examples by their package and function.
func TestTheExamplesOfFeaturesExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, name := range exampleFiles(t, "..") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[strings.TrimSuffix(file.Name.Name, "_test")+"."+f.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile("`([a-z]+\\.Example\\w*)`").FindAllStringSubmatch(read(t, "reference/packages.md"), -1)
	require.Greater(t, len(named), 20)
	for _, name := range named {
		assert.True(t, declared[name[1]], "reference/packages.md names %s", name[1])
	}
}
