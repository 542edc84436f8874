package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWalkthroughQuotesItsExample(t *testing.T) {
	t.Parallel()
	quotesCode(t, "guides/walkthrough.md", "../examples/planningpoker")
}

func quotesCode(t *testing.T, name, folder string) {
	t.Helper()
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	code := lines(t, folder)
	quoted := 0
	for n, block := range strings.Split(string(page), "```") {
		if n%2 == 0 || !strings.HasPrefix(block, "go\n") {
			continue
		}
		for _, line := range strings.Split(strings.TrimPrefix(block, "go\n"), "\n") {
			if line = strings.TrimSpace(line); line == "" || line == "..." {
				continue
			}
			quoted++
			if !code[line] {
				t.Errorf("no line of the example is %q", line)
			}
		}
	}
	require.Positive(t, quoted)
}

// lines returns the lines of all sources in a folder, without indentation.
func lines(t *testing.T, folder string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, line := range strings.Split(string(source), "\n") {
			all[strings.TrimSpace(line)] = true
		}
		return err
	}))
	return all
}
