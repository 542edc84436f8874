package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryConfigIsOnTheConfigurationPage(t *testing.T) {
	t.Parallel()
	page := read(t, "reference/configuration.md")
	for _, file := range publicFiles(t, "..") {
		folder := strings.Trim(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), ".."), "/")
		pkg := path.Base(folder)
		switch folder {
		case "":
			pkg = "millrace"
		case "journal/journaltype":
			pkg = "journal" // which has an alias for each type
		}
		for _, name := range structs(t, file) {
			if strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Options") {
				assert.Contains(t, page, "`"+pkg+"."+name+"`", folder)
			}
		}
	}
}

// structs returns the names of the exported structs of a file.
func structs(t *testing.T, name string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		if general, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range general.Specs {
				if of, ok := spec.(*ast.TypeSpec); ok && of.Name.IsExported() {
					if _, ok := of.Type.(*ast.StructType); ok {
						names = append(names, of.Name.Name)
					}
				}
			}
		}
	}
	return names
}
