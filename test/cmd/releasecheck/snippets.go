package main

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// goSnippets returns the Go code blocks of a page. Each must be a complete file, so that a reader
// can copy and compile it. It must not import internal packages, which do not compile elsewhere.
func goSnippets(page []byte) ([][]byte, error) {
	var snippets [][]byte
	for number, rest := 1, page; ; number++ {
		_, after, ok := bytes.Cut(rest, []byte("\n```go\n"))
		if !ok {
			return snippets, nil
		}
		snippet, after, ok := bytes.Cut(after, []byte("\n```\n"))
		if !ok {
			return nil, fmt.Errorf("snippet %d does not end", number)
		}
		file, err := parser.ParseFile(token.NewFileSet(), "snippet", append(snippet, '\n'), parser.ImportsOnly)
		if err != nil {
			return nil, fmt.Errorf("snippet %d is not a complete file: %w", number, err)
		}
		for _, imported := range file.Imports {
			if strings.Contains(imported.Path.Value+"/", "/internal/") {
				return nil, fmt.Errorf("snippet %d imports %s, which users cannot", number, imported.Path.Value)
			}
		}
		snippets = append(snippets, append(bytes.Clone(snippet), '\n'))
		rest = append([]byte("\n"), after...)
	}
}
