package docs

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesShowProgramsAsTheyAre(t *testing.T) {
	t.Parallel()
	for page, source := range map[string]string{"README.md": "examples/quickstart/main.go"} {
		marker := "<!-- " + source + " -->\n```go\n"
		_, after, ok := strings.Cut(read(t, "../"+page), marker)
		require.True(t, ok, "%s lacks %q", page, marker)
		shown, _, _ := strings.Cut(after, "```\n")
		assert.Equal(t, read(t, "../"+source), shown, "copy %s into %s", source, page)
	}
}

func TestTheReadmeAndTheQuickstartAreShort(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"../README.md": 230, "../examples/quickstart/main.go": 85} {
		assert.LessOrEqual(t, strings.Count(read(t, name), "\n"), most, "lines of %s", name)
	}
}

func TestTheGoVersionIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	assert.Contains(t, read(t, "../README.md"), "needs Go "+version+" or later")
	assert.Contains(t, read(t, "../.github/workflows/ci.yml"), "golang:"+version+"-")
}

func TestTheIndexListsEveryPage(t *testing.T) {
	t.Parallel()
	index := read(t, "README.md")
	for _, page := range pages(t) {
		if page != "README.md" {
			assert.Contains(t, index, "("+page+")", "the index, docs/README.md")
		}
	}
}

func TestTheReadmesFirstProgramPrintsWhatItShows(t *testing.T) {
	t.Parallel()
	_, after, ok := strings.Cut(read(t, "../README.md"), "\ngo run ./examples/quickstart\n```\n\nOutput:\n\n```text\n")
	require.True(t, ok, "README.md shows the command and its output")
	want, _, _ := strings.Cut(after, "```\n")
	run := exec.CommandContext(t.Context(), "go", "run", "./examples/quickstart")
	run.Dir = ".."
	got, err := run.Output()
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}
