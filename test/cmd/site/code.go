package main

import (
	"bytes"
	"fmt"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

var formatter = html.New(html.WithClasses(true))

// codeRenderer renders fenced code with a class for the kind of each token.
type codeRenderer struct{}

func (codeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, renderCode)
}

func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	lexer := lexers.Get(string(block.Language(source)))
	if lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, string(block.Lines().Value(source)))
	if err != nil {
		return ast.WalkStop, err
	}
	return ast.WalkContinue, formatter.Format(w, styles.Fallback, tokens)
}

// codeColors returns the style of code, in light and in dark.
func codeColors() ([]byte, error) {
	var out bytes.Buffer
	for _, scheme := range []struct{ name, style string }{{"light", "github"}, {"dark", "github-dark"}} {
		_, _ = fmt.Fprintf(&out, "@media (prefers-color-scheme: %s) {\n", scheme.name)
		if err := formatter.WriteCSS(&out, styles.Get(scheme.style)); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintln(&out, "}")
	}
	return out.Bytes(), nil
}
