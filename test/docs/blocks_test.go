package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The compiler checks the code of the pages, because it is also in a Go file. A page may omit lines
// with "..." and indent differently. Package tutorial compiles and runs the pages of the tutorial.
func TestEveryGoBlockIsCompiled(t *testing.T) {
	t.Parallel()
	sources := goFiles(t)
	for _, page := range append(pages(t), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		if strings.HasPrefix(page, "tutorial/") {
			continue
		}
		for _, block := range snippets(read(t, page)) {
			if !slices.ContainsFunc(sources, block.isIn) {
				t.Errorf("%s:%d: no Go file contains this block", page, block.line)
			}
		}
	}
}

func TestABlockThatIsNotCompiledIsFound(t *testing.T) {
	t.Parallel()
	source := strings.Split("package p\n\nfunc f() {\na()\nb()\nc()\n}", "\n")
	for text, want := range map[string]bool{
		"a()\nb()":           true,
		"\ta()\n\n\tb()":     true,
		"func f() {\n...\n}": true,
		"a()\n...\nc()":      true,
		"a()\nc()":           false,
		"c()\n...\na()":      false,
		"b(1)":               false,
		"":                   false,
	} {
		blocks := snippets("text\n```go\n" + text + "\n```\n")
		require.Len(t, blocks, 1, text)
		assert.Equal(t, want, blocks[0].isIn(source), text)
	}
	assert.Equal(t, 2, snippets("\n```go\na()\n```\n")[0].line)
}

type snippet struct {
	line   int
	pieces [][]string // the lines between those that are left out, without indentation
}

// snippets returns the Go code of a page.
func snippets(page string) (blocks []snippet) {
	lines := strings.Split(page, "\n")
	for n := 0; n < len(lines); n++ {
		if strings.TrimSpace(lines[n]) != "```go" {
			continue
		}
		block, piece := snippet{line: n + 1}, []string(nil)
		for n++; n < len(lines) && strings.TrimSpace(lines[n]) != "```"; n++ {
			switch line := strings.TrimSpace(lines[n]); line {
			case "":
			case "...":
				block.pieces, piece = append(block.pieces, piece), nil
			default:
				piece = append(piece, line)
			}
		}
		blocks = append(blocks, snippet{block.line, append(block.pieces, piece)})
	}
	return blocks
}

// isIn reports whether the pieces of a block are in a source, one after the other.
func (b snippet) isIn(source []string) bool {
	found := false
	for _, piece := range b.pieces {
		if len(piece) == 0 {
			continue
		}
		at := slices.IndexFunc(source, func(line string) bool { return line == piece[0] })
		for at >= 0 && !startsWith(source[at:], piece) {
			next := slices.Index(source[at+1:], piece[0])
			if next < 0 {
				return false
			}
			at += 1 + next
		}
		if at < 0 {
			return false
		}
		source, found = source[at+len(piece):], true
	}
	return found
}

func startsWith(lines, piece []string) bool {
	return len(lines) >= len(piece) && slices.Equal(lines[:len(piece)], piece)
}

// goFiles returns the lines of all Go files without empty ones and indentation.
func goFiles(t *testing.T) (sources [][]string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		content, err := os.ReadFile(path)
		var lines []string
		for _, line := range strings.Split(string(content), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		sources = append(sources, lines)
		return err
	}))
	return sources
}
