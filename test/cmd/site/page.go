package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(
		html.WithUnsafe(), // the pages are those of the repository
		renderer.WithNodeRenderers(util.Prioritized(codeRenderer{}, 100)),
	),
)

// A page is a parsed Markdown file.
type page struct {
	path    string // of the file, relative to the root, with slashes
	source  []byte
	title   string
	node    ast.Node
	anchors map[string]bool
}

func parse(name string, source []byte) *page {
	ids := &anchors{used: map[string]bool{}}
	p := &page{path: name, source: source, title: name, anchors: ids.used}
	p.node = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	for n := p.node.FirstChild(); n != nil; n = n.NextSibling() {
		if heading, ok := n.(*ast.Heading); ok {
			p.title = p.text(heading)
			break
		}
	}
	return p
}

// address returns the path of the page in the site. A README is the index of its folder.
func (p *page) address() string {
	folder, file := path.Split(p.path)
	if file == "README.md" {
		return folder + "index.html"
	}
	return folder + strings.TrimSuffix(file, ".md") + ".html"
}

func (p *page) html() (string, error) {
	var out bytes.Buffer
	err := markdown.Renderer().Render(&out, p.source, p.node)
	return out.String(), err
}

// text returns the text of a node without its markup. Blocks end with a space.
func (p *page) text(node ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.HTMLBlock:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(p.source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				out.Write(n.Value)
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				out.Write(n.Lines().Value(p.source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// A link is a link or an image of a page.
type link struct {
	to    *[]byte
	image bool
}

func (l link) destination() string { return string(*l.to) }
func (l link) set(to string)       { *l.to = []byte(to) }

func (p *page) links() (all []link) {
	_ = ast.Walk(p.node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				all = append(all, link{to: &n.Destination})
			case *ast.Image:
				all = append(all, link{to: &n.Destination, image: true})
			}
		}
		return ast.WalkContinue, nil
	})
	return all
}

// anchors generates the ids of the headings of a page as GitHub does.
type anchors struct{ used map[string]bool }

func (a *anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, string(heading))
	id := base
	for n := 1; a.used[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	a.used[id] = true
	return []byte(id)
}

func (a *anchors) Put(id []byte) { a.used[string(id)] = true }
