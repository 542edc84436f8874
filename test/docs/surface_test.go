package docs

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateSurface = flag.Bool("api.update", false, "write the files in api")

// TestTheSurfaceIsAsListed compares the exported declarations of each public package with its file
// in the folder api. So a change of the surface is a change of a file that a reviewer sees.
func TestTheSurfaceIsAsListed(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for folder, lines := range surfaces(t) {
		name := filepath.Join("..", "api", strings.ReplaceAll(folder, "/", ".")+".txt")
		listed[name] = true
		text := strings.Join(lines, "\n") + "\n"
		if *updateSurface {
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))  //nolint:gosec // a folder of the repository
			require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) //nolint:gosec // a file of the repository
		}
		stored, err := os.ReadFile(name)
		require.NoError(t, err, "run make api")
		assert.Equal(t, string(stored), text, "%s is old: run make api, and say in the commit why the surface changes", name)
	}
	files, err := filepath.Glob("../api/*.txt")
	require.NoError(t, err)
	for _, name := range files {
		assert.True(t, listed[name], "%s is of no package: remove it", name)
	}
}

// surfaces returns the lines of each public package, by its folder.
func surfaces(t *testing.T) map[string][]string {
	t.Helper()
	lines := map[string][]string{}
	for _, name := range publicFiles(t, "..") {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		folder := filepath.ToSlash(strings.Trim(strings.TrimPrefix(filepath.Dir(name), ".."), string(filepath.Separator)))
		if folder == "" {
			folder = "millrace"
		}
		lines[folder] = append(lines[folder], surface(t, set, file)...)
	}
	for folder, all := range lines {
		embeds := func(unexported string) bool {
			return slices.ContainsFunc(all, func(line string) bool { return strings.HasSuffix(line, " has "+unexported) })
		}
		all = slices.DeleteFunc(all, func(line string) bool {
			unexported, promoted := receiverOf(line)
			return promoted && !embeds(unexported)
		})
		slices.Sort(all)
		lines[folder] = all
	}
	return lines
}

// receiverOf returns the receiver of a method of an unexported type.
func receiverOf(line string) (unexported string, is bool) {
	method, is := strings.CutPrefix(line, "func (")
	declared, _, _ := strings.Cut(method, ")")
	name := strings.TrimLeft(declared[strings.LastIndex(declared, " ")+1:], "*")
	return name, is && !ast.IsExported(name)
}

// surface returns a line for each exported declaration of a file, and for each exported field and
// method. These include methods of unexported types, which a type that embeds them may have.
func surface(t *testing.T, set *token.FileSet, file *ast.File) (lines []string) {
	t.Helper()
	add := func(kind string, node any) {
		var text bytes.Buffer
		require.NoError(t, printer.Fprint(&text, set, node))
		lines = append(lines, kind+" "+strings.Join(strings.Fields(text.String()), " "))
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() {
				decl.Doc, decl.Body = nil, nil
				add("", decl)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() {
							lines = append(lines, decl.Tok.String()+" "+name.Name)
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						more := typeSurface(add, spec)
						lines = append(lines, more...)
					}
				}
			}
		}
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// typeSurface returns the line of a type, and adds its exported fields or methods.
func typeSurface(add func(kind string, node any), spec *ast.TypeSpec) (lines []string) {
	name, fields := spec.Name.Name, (*ast.FieldList)(nil)
	switch of := spec.Type.(type) {
	case *ast.StructType:
		fields = of.Fields
		lines = append(lines, "type "+name+" struct")
	case *ast.InterfaceType:
		fields = of.Methods
		lines = append(lines, "type "+name+" interface")
	default:
		spec.Doc, spec.Comment = nil, nil
		add("type", spec)
		return nil
	}
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			add("type "+name+" has", field.Type)
		}
		for _, member := range field.Names {
			if member.IsExported() {
				add("type "+name+" has "+member.Name, field.Type)
			}
		}
	}
	return lines
}
