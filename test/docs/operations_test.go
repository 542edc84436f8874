package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesForOperatorsShowCodeThatCompiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("operations/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		if name == "operations/console.md" {
			continue // which has a test of its own
		}
		for _, block := range goBlocks(read(t, name)) {
			if assert.NotEmpty(t, block.file, "%s has a Go block that is of no file:\n%s", name, block.code) {
				assert.Contains(t, withoutIndent(read(t, "../"+block.file)), withoutIndent(block.code), "%s: %s", name, block.file)
			}
		}
	}
}

func TestABlockOfCodeIsTakenFromItsFile(t *testing.T) {
	t.Parallel()
	blocks := goBlocks("# A page\n\n<!-- a/b.go -->\n```go\nf()\n\tg()\n```\n\ntext\n\n```go\nh()\n```\n")

	assert.Equal(t, []goBlock{{"a/b.go", "f()\n\tg()\n"}, {"", "h()\n"}}, blocks)
	assert.Equal(t, "f()\ng()\n", withoutIndent("\tf()\n\t\tg()\n"))
}

type goBlock struct{ file, code string }

// goBlocks returns the blocks of Go code on a page, with the files that comments before them name.
func goBlocks(page string) (blocks []goBlock) {
	for _, match := range regexp.MustCompile("(?s)(?:<!-- (\\S+\\.go) -->\n)?```go\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, goBlock{match[1], match[2]})
	}
	return blocks
}

func withoutIndent(code string) string {
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(strings.ReplaceAll(code, "\r\n", "\n"), "")
}
