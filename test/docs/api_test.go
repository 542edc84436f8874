package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoPublicPackageExportsWhatIsInternal(t *testing.T) {
	t.Parallel()
	files := publicFiles(t, "..")
	require.Greater(t, len(files), 100)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, name := range internalNames(file) {
			if path == "../journal/journal.go" && name == "engine.Engine" {
				continue // the result of Journal.Internal, which is not for users
			}
			t.Errorf("%s exports %s, which users cannot look up: declare it in the public package", path, name)
		}
	}
}

func TestAnExportOfWhatIsInternalIsFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		"type Group = checkpoint.Group":                              {"checkpoint.Group"},
		"type Groups []*checkpoint.Group":                            {"checkpoint.Group"},
		"type T struct { G checkpoint.Group; own checkpoint.Store }": {"checkpoint.Group"},
		"type T struct { checkpoint.Store }":                         {"checkpoint.Store"},
		"type I interface { M(checkpoint.Group) }":                   {"checkpoint.Group"},
		"func F(map[string]checkpoint.Group) error { return nil }":   {"checkpoint.Group"},
		"func (t *T[S]) M() checkpoint.Group { return g }":           {"checkpoint.Group"},
		"const Key = checkpoint.Key":                                 {"checkpoint.Key"},
		"var V checkpoint.Group":                                     {"checkpoint.Group"},
		// errors.Is compares its value.
		"var ErrFenced = checkpoint.ErrFenced": nil,
		"func F() { checkpoint.New() }":        nil,
		"func f(checkpoint.Group) {}":          nil,
		"func (t t) M(checkpoint.Group) {}":    nil,
		"type t = checkpoint.Group":            nil,
	} {
		text := "package p\nimport \"github.com/millrace-dev/millrace/internal/checkpoint\"\n" + source
		file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
		require.NoError(t, err, source)
		assert.Equal(t, want, internalNames(file), source)
	}
}

// publicFiles returns the sources of the packages that programs import.
func publicFiles(t *testing.T, root string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && notPublic(entry):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go") && isSource(entry):
			files = append(files, path)
		}
		return nil
	}))
	return files
}

// notPublic reports whether programs cannot or need not import the packages of a directory.
func notPublic(dir fs.DirEntry) bool {
	return slices.Contains([]string{"internal", "test", "cmd", "examples"}, dir.Name()) ||
		strings.HasPrefix(dir.Name(), ".git")
}

// internalNames returns the names of internal packages that the exported declarations of a file
// refer to.
func internalNames(file *ast.File) (names []string) {
	internal := map[string]bool{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		internal[name] = strings.Contains(path, "/internal/")
	}
	for _, node := range exported(file) {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				hideUnexported(n)
			case *ast.SelectorExpr:
				if name, ok := n.X.(*ast.Ident); ok && internal[name.Name] {
					names = append(names, name.Name+"."+n.Sel.Name)
				}
			}
			return true
		})
	}
	return names
}

// hideUnexported removes the fields that users cannot see from a struct.
func hideUnexported(s *ast.StructType) {
	s.Fields.List = slices.DeleteFunc(s.Fields.List, func(f *ast.Field) bool {
		return len(f.Names) > 0 && !slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
	})
}

// exported returns the parts of the exported declarations of a file that users see.
func exported(file *ast.File) (nodes []ast.Node) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() && (decl.Recv == nil || ast.IsExported(receiver(decl.Recv.List[0].Type))) {
				nodes = append(nodes, decl.Type)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						nodes = append(nodes, spec.Type)
					}
				case *ast.ValueSpec:
					if !slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
						continue
					}
					if spec.Type != nil {
						nodes = append(nodes, spec.Type)
					}
					for _, value := range spec.Values {
						if decl.Tok == token.CONST {
							nodes = append(nodes, value)
						}
					}
				}
			}
		}
	}
	return nodes
}

// receiver returns the name of a receiver's type.
func receiver(of ast.Expr) string {
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}
