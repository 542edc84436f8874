package docs

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/millrace-dev/millrace"

func TestEveryDocLinkLeadsToAnExportedName(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	packages := parsePackages(t, fset)
	for _, name := range publicFiles(t, "..") {
		of := packages[importPath(name)]
		for _, broken := range brokenLinks(fset, packages, of, of.files[name]) {
			t.Error(broken)
		}
	}
}

func TestABrokenDocLinkIsFound(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	const source = `// Package p has [T], [*T], [T.M], [T.F], [I.M], [C], [q.Q], [fmt.Errorf] and [E.M].
//
// It has no [Gone], no [*Lost],
// and no [T.Gone], [q.Gone] or [other.T]. An index [n] is no link.
package p

import "` + module + `/q"

const C, c = 1, 2

// T has a field that is a [Link].
type T struct {
	F int // F was [Old].
}

func (*T) M(q.Q) {}

type I interface{ M() }

type E struct{ *T }
`
	p := parsePackage(t, fset, "p.go", source)
	packages := map[string]*goPackage{
		module + "/p": p,
		module + "/q": parsePackage(t, fset, "q.go", "package q\ntype Q int"),
	}
	assert.Equal(t, []string{
		"p.go:3: [Gone] leads nowhere",
		"p.go:3: [*Lost] leads nowhere",
		"p.go:4: [T.Gone] leads nowhere",
		"p.go:4: [q.Gone] leads nowhere",
		"p.go:4: [other.T] leads nowhere",
		"p.go:11: [Link] leads nowhere",
		"p.go:13: [Old] leads nowhere",
	}, brokenLinks(fset, packages, p, p.files["p.go"]))
}

// goPackage holds the exported names of a package: types, functions, values, and methods and
// fields as Type.Name.
type goPackage struct {
	files   map[string]*ast.File
	names   map[string]bool
	embeds  map[string]bool // types that have more names than are declared in the package
	imports map[string]string
}

// parsePackages returns all packages of the module by their import paths.
func parsePackages(t *testing.T, fset *token.FileSet) map[string]*goPackage {
	t.Helper()
	packages := map[string]*goPackage{}
	require.NoError(t, filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || !isSource(entry) {
			return err
		}
		of := packages[importPath(name)]
		if of == nil {
			of = newPackage()
			packages[importPath(name)] = of
		}
		of.parse(t, fset, name, nil)
		return nil
	}))
	return packages
}

func parsePackage(t *testing.T, fset *token.FileSet, name, source string) *goPackage {
	t.Helper()
	p := newPackage()
	p.parse(t, fset, name, source)
	return p
}

func newPackage() *goPackage {
	return &goPackage{map[string]*ast.File{}, map[string]bool{}, map[string]bool{}, map[string]string{}}
}

// importPath returns the import path of the package of a file, whose name is relative to docs.
func importPath(file string) string {
	return path.Join(module, filepath.ToSlash(filepath.Dir(strings.TrimPrefix(file, "../"))))
}

func (p *goPackage) parse(t *testing.T, fset *token.FileSet, name string, source any) {
	t.Helper()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	p.files[name] = file
	for _, spec := range file.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		p.imports[path.Base(target)] = target
		if spec.Name != nil {
			p.imports[spec.Name.Name] = target
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				p.names[decl.Name.Name] = true
			} else {
				p.names[receiver(decl.Recv.List[0].Type)+"."+decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				p.declare(spec)
			}
		}
	}
}

func (p *goPackage) declare(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			p.names[name.Name] = true
		}
	case *ast.TypeSpec:
		p.names[spec.Name.Name] = true
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			p.embeds[spec.Name.Name] = spec.Assign.IsValid()
			return
		}
		for _, member := range members.List {
			p.embeds[spec.Name.Name] = p.embeds[spec.Name.Name] || len(member.Names) == 0
			for _, name := range member.Names {
				p.names[spec.Name.Name+"."+name.Name] = true
			}
		}
	}
}

// has reports whether the package has a name, which is that of a member if it has a type.
func (p *goPackage) has(inType, name string) bool {
	if inType == "" {
		return p.names[name]
	}
	return p.names[inType+"."+name] || p.embeds[inType]
}

// brokenLinks returns the doc links of a file to names that do not exist, with their places.
func brokenLinks(fset *token.FileSet, packages map[string]*goPackage, of *goPackage, file *ast.File) (broken []string) {
	reader := &comment.Parser{
		LookupSym: func(string, string) bool { return true },
		LookupPackage: func(name string) (string, bool) {
			if target, ok := of.imports[name]; ok {
				return target, true
			}
			if target, ok := comment.DefaultLookupPackage(name); ok {
				return target, true
			}
			return module + "/" + name, true // not imported, so that no tool makes it a link
		},
	}
	for _, group := range file.Comments {
		wrong := map[string]bool{}
		for _, link := range docLinks(reader.Parse(group.Text()).Content) {
			target, known := of, true
			if link.ImportPath != "" {
				target, known = packages[link.ImportPath]
				known = known || !strings.HasPrefix(link.ImportPath, module)
			}
			if link.Name != "" && (!known || target != nil && !target.has(link.Recv, link.Name)) {
				wrong[linkText(link)] = true
			}
		}
		broken = append(broken, places(fset, group, wrong)...)
	}
	return broken
}

// places returns where in a comment the broken links are.
func places(fset *token.FileSet, group *ast.CommentGroup, wrong map[string]bool) (places []string) {
	for _, c := range group.List {
		for n, line := range strings.Split(c.Text, "\n") {
			at := fset.Position(c.Pos())
			found := map[int]string{}
			for text := range wrong {
				if column := strings.Index(line, text); column >= 0 {
					found[column] = text
				}
			}
			for _, column := range slices.Sorted(maps.Keys(found)) {
				places = append(places, fmt.Sprintf("%s:%d: %s leads nowhere", at.Filename, at.Line+n, found[column]))
			}
		}
	}
	return places
}

func docLinks(blocks []comment.Block) (links []*comment.DocLink) {
	for _, block := range blocks {
		var text []comment.Text
		switch block := block.(type) {
		case *comment.Paragraph:
			text = block.Text
		case *comment.Heading:
			text = block.Text
		case *comment.List:
			for _, item := range block.Items {
				links = append(links, docLinks(item.Content)...)
			}
		}
		for _, part := range text {
			if link, ok := part.(*comment.DocLink); ok {
				links = append(links, link)
			}
		}
	}
	return links
}

// linkText returns a link as it is written.
func linkText(link *comment.DocLink) string {
	var text strings.Builder
	for _, part := range link.Text {
		if plain, ok := part.(comment.Plain); ok {
			text.WriteString(string(plain))
		}
	}
	return "[" + text.String() + "]"
}
