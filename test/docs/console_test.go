package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePageOfTheConsoleShowsCodeThatCompiles(t *testing.T) {
	t.Parallel()
	page := read(t, "operations/console.md")
	program := read(t, "../test/docs/operators/main.go")
	blocks := strings.Split(page, "```go\n")[1:]
	require.Len(t, blocks, 1)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		assert.Contains(t, program, block, "no code of test/docs/operators")
	}
}
