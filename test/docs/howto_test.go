package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHowToPagesShowCodeThatCompiles(t *testing.T) {
	t.Parallel()
	for _, page := range howTos(t) {
		for _, block := range goBlocks(read(t, page)) {
			source, ok := strings.CutPrefix(block.above, "<!-- ")
			if !assert.True(t, ok, "%s: name the file above this block as in <!-- examples/mails/main.go -->\n%s", page, block.code) {
				continue
			}
			file := read(t, "../"+strings.TrimSuffix(source, " -->"))
			if !strings.Contains(dedent(file), dedent(block.code)) {
				t.Errorf("%s: copy this from %s\n%s", page, source, block.code)
			}
		}
	}
}

func TestHowToPagesAreShort(t *testing.T) {
	t.Parallel()
	for _, page := range howTos(t) {
		assert.LessOrEqual(t, strings.Count(read(t, page), "\n"), 180, "lines of %s", page)
	}
}

func TestCodeWithoutAFileIsNoticed(t *testing.T) {
	t.Parallel()
	blocks := goBlocks("# Page\n\n<!-- a.go -->\n```go\n\tx := 1\n```\n\ntext\n\n```go\ny\n```\n```\nno code\n```\n")
	assert.Equal(t, []goBlock{{"<!-- a.go -->", "\tx := 1\n"}, {"", "y\n"}}, blocks)
	assert.Contains(t, dedent("func f() {\n\t\tx := 1\n\t\treturn\n}\n"), dedent("x := 1\nreturn\n"))
}

func howTos(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("howto/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	return pages
}

// A goBlock is a block of Go code, and the line above it.
type goBlock struct{ above, code string }

func goBlocks(page string) (blocks []goBlock) {
	var above string
	inside, ours := false, false
	for _, line := range strings.Split(page, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			if inside = !inside; inside {
				if ours = trimmed == "```go"; ours {
					blocks = append(blocks, goBlock{above: above})
				}
			}
			above = ""
		case !inside:
			above = trimmed
		case ours:
			blocks[len(blocks)-1].code += line + "\n"
		}
	}
	return blocks
}

// dedent removes indentation, so that code can be compared with the part of a function.
func dedent(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// A command of aws may reach a real account, so a page must say that it does.
func TestNoHowToReachesAWSWithoutSayingSo(t *testing.T) {
	t.Parallel()
	for _, page := range howTos(t) {
		text := read(t, page)
		if strings.Contains(text, "\naws ") || strings.Contains(text, " aws ") {
			assert.Contains(t, strings.Join(strings.Fields(text), " "), "change tables in your AWS account", page)
			assert.Contains(t, text, "<!-- on AWS -->", page)
		}
		assert.NotContains(t, text, "aws dynamodb delete", page)
	}
}
