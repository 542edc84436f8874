package docs

import (
	"path/filepath"
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
			continue // it has its own test
		}
		for _, block := range goBlocks(read(t, name)) {
			source := strings.TrimSuffix(strings.TrimPrefix(block.above, "<!-- "), " -->")
			if assert.NotEqual(t, block.above, source, "%s: name the file above this block\n%s", name, block.code) {
				assert.Contains(t, dedent(read(t, "../"+source)), dedent(block.code), "%s: copy the code from %s", name, source)
			}
		}
	}
}

func TestTheChecklistForProductionIsShort(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, strings.Count(read(t, "operations/README.md"), "\n"), 120)
}
