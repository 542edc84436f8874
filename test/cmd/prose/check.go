package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	columns  = 100
	tabWidth = 4
)

// A finding is a place in a file, and what is wrong there.
type finding struct {
	file string
	line int
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text) }

// A passage is a piece of text in a file, which starts in the given line.
type passage struct {
	line int
	text string
}

// A file is split into what the rules apply to.
type file struct {
	text    []passage // lines of comments and of pages, and string literals
	names   []passage // identifiers as phrases, each once
	wide    []passage // the lines that have to fit into the columns
	allowed map[string]bool
	found   []finding
}

// check returns the findings in a Go file or a Markdown page.
func check(name string, source []byte) []finding {
	f, err := split(name, source)
	if err != nil {
		return []finding{{name, 1, err.Error()}}
	}
	for _, line := range f.wide {
		if width(line.text) > columns && !strings.Contains(line.text, "://") {
			f.found = append(f.found, finding{name, line.line, fmt.Sprintf("the line has %d columns, more than %d", width(line.text), columns)})
		}
	}
	for _, r := range rules {
		if f.allowed[r.name] {
			continue
		}
		if r.inText {
			f.refuse(name, r, f.text)
		}
		if r.inNames {
			f.refuse(name, r, f.names)
		}
	}
	return f.found
}

func (f *file) refuse(name string, r rule, in []passage) {
	for _, p := range in {
		if word := r.find(p.text); word != "" {
			f.found = append(f.found, finding{name, p.line, fmt.Sprintf("%q: write %s, or allow %q (go doc ./test/cmd/prose)", word, r.instead, r.name)})
		}
	}
}

func split(name string, source []byte) (*file, error) {
	f := &file{allowed: map[string]bool{}}
	if filepath.Ext(name) == ".md" {
		f.splitPage(string(source))
		return f, nil
	}
	return f, f.splitGo(name, source)
}

var (
	generated   = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	directive   = regexp.MustCompile(`^//[a-z]+:\S`)
	allowedGo   = regexp.MustCompile(`^//prose:allow ([a-z ]+?): \S`)
	allowedPage = regexp.MustCompile(`^<!-- prose:allow ([a-z ]+): \S.* -->$`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
)

// splitGo leaves out the strings of tests, which are data as often as text.
func (f *file) splitGo(name string, source []byte) error {
	if generated.Match(source) {
		return nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	lines := strings.Split(string(source), "\n")
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			first := set.Position(c.Pos()).Line
			if match := allowedGo.FindStringSubmatch(c.Text); match != nil {
				f.allowed[match[1]] = true
			}
			if directive.MatchString(c.Text) {
				continue
			}
			for n, text := range strings.Split(c.Text, "\n") {
				f.text = append(f.text, passage{first + n, text})
				f.wide = append(f.wide, passage{first + n, lines[first+n-1]})
			}
		}
	}
	seen := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			if !seen[n.Name] {
				seen[n.Name] = true
				f.names = append(f.names, passage{set.Position(n.Pos()).Line, phrase(n.Name)})
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && !strings.HasSuffix(name, "_test.go") {
				f.text = append(f.text, passage{set.Position(n.Pos()).Line, text})
			}
		}
		return true
	})
	return nil
}

// splitPage leaves out code. Rows of tables and pictures may have any width.
func (f *file) splitPage(source string) {
	code := false
	for n, line := range strings.Split(source, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case code:
		case allowedPage.MatchString(line):
			f.allowed[allowedPage.FindStringSubmatch(line)[1]] = true
		default:
			f.text = append(f.text, passage{n + 1, inlineCode.ReplaceAllString(line, "`code`")})
			if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") {
				f.wide = append(f.wide, passage{n + 1, line})
			}
		}
	}
}

// phrase returns the words of an identifier: maxColumns is "max columns".
func phrase(name string) string {
	var words strings.Builder
	for n, r := range name {
		switch {
		case r == '_':
			r = ' '
		case unicode.IsUpper(r) && n > 0:
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(r))
	}
	return words.String()
}

func width(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}
