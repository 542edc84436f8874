package docs

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A field has a comment of its own, or the comment of its type or of the fields above names it. A
// field Aggregate of type aggregate.ID needs none.
func TestEveryExportedFieldIsDocumented(t *testing.T) {
	t.Parallel()
	for _, path := range publicFiles(t, "..") {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Empty(t, undocumented(set, file), "%s has exported fields without a comment", path)
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
		"type T struct { Aggregate aggregate.ID }":               nil,
		"type T struct { Aggregate string }":                     {"T.Aggregate"},
		// A comment stands for the fields below it that it names, up to an empty line.
		"type T struct {\n // A and B are counts.\n A int\n B int }":   nil,
		"type T struct {\n // A and B are counts.\n A int\n\n B int }": {"T.B"},
		"type T struct {\n // A and Bs are.\n A int\n B int }":         {"T.B"},
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "", "package p\n"+source, parser.ParseComments)
		require.NoError(t, err, source)
		assert.Equal(t, want, undocumented(set, file), source)
	}
}

func undocumented(set *token.FileSet, file *ast.File) (names []string) {
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
			names = append(names, undocumentedFields(set, declared, types.Doc.Text()+declared.Doc.Text())...)
		}
	}
	return names
}

func undocumentedFields(set *token.FileSet, declared *ast.TypeSpec, doc string) (names []string) {
	fields, _ := declared.Type.(*ast.StructType)
	if fields == nil {
		return nil
	}
	about := comments(set, fields)
	for _, field := range fields.Fields.List {
		for _, name := range field.Names {
			obvious := name.Name == "Aggregate" && types.ExprString(field.Type) == "aggregate.ID"
			if name.IsExported() && about[field].text == "" && !obvious && !mentions(doc, name.Name) {
				names = append(names, declared.Name.Name+"."+name.Name)
			}
		}
	}
	return names
}

// about is the comment of a field. It may stand above an earlier field.
type about struct {
	text  string
	above *ast.Field
}

// comments returns the comments of fields. A comment above a field is also the comment of the
// fields that follow without an empty line, if it names them and they have none.
func comments(set *token.FileSet, of *ast.StructType) map[*ast.Field]about {
	found := map[*ast.Field]about{}
	var above about
	last := 0
	for _, field := range of.Fields.List {
		line := set.Position(field.Pos()).Line
		switch {
		case field.Doc != nil:
			above = about{field.Doc.Text(), field}
		case line > last+1:
			above = about{}
		}
		last = set.Position(field.End()).Line
		switch {
		case field.Doc != nil:
			found[field] = above
		case field.Comment != nil:
			found[field] = about{field.Comment.Text(), field}
		case len(field.Names) > 0 && mentions(above.text, field.Names[0].Name):
			found[field] = above
		}
	}
	return found
}

func mentions(text, name string) bool {
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(text)
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
