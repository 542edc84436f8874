package docs

import (
	"flag"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const configurationPage = "reference/configuration.md"

var updateConfiguration = flag.Bool("configuration.update", false, "write "+configurationPage)

const configurationHead = `# Configuration

Every setting of every package, from the source code. Do not edit this page by hand:
` + "`go test ./test/docs -configuration.update`" + ` writes it.

A field that is left out has its default. A function that takes a configuration checks it, and
returns a ` + "`*ConfigError`" + ` that names the invalid field. Packages without this type return a
plain error.
`

// configured are the types on the page, by the folder of their package.
var configured = []struct{ folder, types string }{
	{"", "Config Group"},
	{"journal", "Config Tables Attributes Indexes HeadsQuery Removal"},
	{"journal/compress", "Config"},
	{"journal/encrypt", "Config KeysConfig"},
	{"journal/archive", "Selection ExportOptions ImportOptions VerifyOptions"},
	{"journal/tail", "Config"},
	{"repository", "Config Redundancy StatesQuery"},
	{"publisher", "Config"},
	{"subscriber", "Config Backoff"},
	{"subscriber/groups", "Selection LagOptions TrimOptions"},
	{"subscriber/dedup", "TableConfig PositionsConfig KeysConfig"},
	{"consistency", "Config"},
	{"live", "Config"},
	{"projection", "Config Table"},
	{"projection/sqlprojection", "Config"},
	{"projection/readmodel", "Config"},
	{"process", "Config Query"},
	{"tracing", "Config"},
	{"metrics", "SubscriberConfig ProjectionConfig ProcessConfig RepositoryConfig"},
	{"console", "Config"},
}

func TestTheConfigurationPageHasEverySetting(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(configurationHead)
	for _, c := range configured {
		writeSettings(t, &page, c.folder, strings.Fields(c.types))
	}
	if *updateConfiguration {
		require.NoError(t, os.WriteFile(configurationPage, []byte(page.String()), 0o644)) //nolint:gosec // a page of the repository
	}
	if page.String() != read(t, configurationPage) { // the page is too long to show its difference
		t.Error("the page is old: run go test ./test/docs -configuration.update")
	}
}

func TestEveryConfigIsOnTheConfigurationPage(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, c := range configured {
		for _, name := range strings.Fields(c.types) {
			listed[path.Join(c.folder, name)] = true
		}
	}
	for _, file := range publicFiles(t, "..") {
		folder := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), ".."))
		for _, name := range structs(t, file) {
			if strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Options") {
				assert.True(t, listed[path.Join(strings.TrimPrefix(folder, "/"), name)], "%s.%s", folder, name)
			}
		}
	}
}

// writeSettings writes a section for each type of a package, with its fields.
func writeSettings(t *testing.T, page *strings.Builder, folder string, names []string) {
	t.Helper()
	set := token.NewFileSet()
	sources, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, source := range sources {
		if !strings.HasSuffix(source, "_test.go") {
			file, err := parser.ParseFile(set, source, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	pkg, err := doc.NewFromFiles(set, files, path.Join(module, folder))
	require.NoError(t, err)
	page.WriteString("\n## Package `" + pkg.Name + "`\n")
	for _, name := range names {
		of := typeNamed(pkg, name)
		require.NotNil(t, of, "%s.%s", folder, name)
		page.WriteString("\n### `" + pkg.Name + "." + name + "`\n")
		for _, spec := range of.Decl.Specs {
			writeFields(page, set, pkg, spec.(*ast.TypeSpec).Type.(*ast.StructType))
		}
	}
}

// writeFields writes fields with their comments. Fields that share a comment stand above it.
func writeFields(page *strings.Builder, set *token.FileSet, pkg *doc.Package, of *ast.StructType) {
	about := comments(set, of)
	for n, field := range of.Fields.List {
		var names []string
		for _, name := range field.Names {
			if name.IsExported() {
				names = append(names, "`"+name.Name+"`")
			}
		}
		if len(names) == 0 {
			continue
		}
		page.WriteString("\n**" + strings.Join(names, ", ") + "** `" + typeOf(set, field.Type) + "`\n")
		if n+1 < len(of.Fields.List) && about[field].above != nil && about[of.Fields.List[n+1]].above == about[field].above {
			continue
		}
		page.WriteString("\n" + markdown(pkg, about[field].text))
	}
}

// typeOf returns a type as it is written, or its kind if it would not fit on a line.
func typeOf(set *token.FileSet, expression ast.Expr) string {
	var of strings.Builder
	_ = printer.Fprint(&of, set, expression) // writes to memory
	if of.Len() < 70 && !strings.Contains(of.String(), "\n") {
		return of.String()
	}
	kind, _, _ := strings.Cut(of.String(), "(")
	kind, _, _ = strings.Cut(kind, " ")
	return kind
}

// markdown returns a comment as Markdown.
func markdown(pkg *doc.Package, text string) string {
	printed := pkg.Printer()
	printed.DocLinkURL = func(*comment.DocLink) string { return "" }
	lines := strings.Split(string(printed.Markdown(pkg.Parser().Parse(text))), "\n")
	for n, line := range lines {
		lines[n] = wrap(line)
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a line of text, or of a list, at 100 columns. Code stays as it is.
func wrap(line string) string {
	if strings.HasPrefix(line, "\t") {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " -"))]
	var wrapped strings.Builder
	wrapped.WriteString(indent)
	column := len(indent)
	for n, word := range strings.Fields(line[len(indent):]) {
		switch {
		case n > 0 && column+1+len(word) > 100:
			wrapped.WriteString("\n" + strings.Repeat(" ", len(indent)))
			column = len(indent)
		case n > 0:
			wrapped.WriteByte(' ')
			column++
		}
		wrapped.WriteString(word)
		column += len(word)
	}
	return wrapped.String()
}

func typeNamed(pkg *doc.Package, name string) *doc.Type {
	for _, of := range pkg.Types {
		if of.Name == name {
			return of
		}
	}
	return nil
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
