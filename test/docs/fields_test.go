package docs

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A field has a comment of its own, or the comment of its type names it.
func TestEveryExportedFieldIsDocumented(t *testing.T) {
	t.Parallel()
	for _, path := range publicFiles(t, "..") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Empty(t, undocumented(file), "%s has exported fields without a comment", path)
	}
}

func TestAFieldWithoutACommentIsFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		"type T struct { A, B int }":                             {"T.A", "T.B"},
		"// T has an A.\ntype T struct { A, B int }":             {"T.B"},
		"type T struct {\n A int // the count\n b int\n}":        nil,
		"type T struct {\n // A is the count.\n A int\n C int }": {"T.C"},
		"type t struct { A int }":                                nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+source, parser.ParseComments)
		require.NoError(t, err, source)
		assert.Equal(t, want, undocumented(file), source)
	}
}

func undocumented(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		types, _ := decl.(*ast.GenDecl)
		if types == nil {
			continue
		}
		for _, spec := range types.Specs {
			declared, _ := spec.(*ast.TypeSpec)
			if declared == nil || !declared.Name.IsExported() {
				continue
			}
			names = append(names, undocumentedFields(declared, types.Doc.Text()+declared.Doc.Text())...)
		}
	}
	return names
}

func undocumentedFields(declared *ast.TypeSpec, doc string) (names []string) {
	fields, _ := declared.Type.(*ast.StructType)
	if fields == nil {
		return nil
	}
	for _, field := range fields.Fields.List {
		for _, name := range field.Names {
			named := regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(doc)
			if name.IsExported() && field.Doc == nil && field.Comment == nil && !named {
				names = append(names, declared.Name.Name+"."+name.Name)
			}
		}
	}
	return names
}

// Lists of packages show the first sentence only.
func TestASynopsisIsOneSentence(t *testing.T) {
	t.Parallel()
	for _, path := range publicFiles(t, "..") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		if file.Doc == nil {
			continue
		}
		text := file.Doc.Text()
		synopsis := new(comment.Printer).Text(new(comment.Parser).Parse(text[:strings.Index(text+".", ".")+1]))
		assert.Regexp(t, `^Package \w+ `, string(synopsis), path)
		assert.NotContains(t, string(synopsis), "github.com/", "%s: a link is printed with its path", path)
	}
}
