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
	source := program + read(t, "../test/docs/signin/signin.go")
	blocks := strings.Split(page, "```go\n")[1:]
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		assert.Contains(t, source, block, "no code of test/docs/operators or test/docs/signin")
	}
}
