package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pages of the design list the folders of the repository.
func TestTheDesignNamesEveryFolder(t *testing.T) {
	t.Parallel()
	overview, tests := read(t, "design/README.md"), read(t, "design/testing.md")
	packages := read(t, "reference/packages.md")
	for _, folder := range folders(t, "..") {
		switch folder {
		case "cmd":
			folder = "cmd/millrace"
		case "internal":
			continue // its folders follow
		}
		assert.Contains(t, overview+packages, "`"+folder+"`", "design/README.md lacks a folder that is no public package")
	}
	for _, folder := range folders(t, "../internal") {
		assert.Contains(t, overview, "`"+folder+"`", "design/README.md lacks a folder of internal")
	}
	for _, folder := range folders(t, "../cmd/millrace/internal") {
		assert.Contains(t, overview, "`"+folder+"` (", "design/README.md lacks a folder of cmd/millrace/internal")
	}
	for _, folder := range folders(t, "../test") {
		assert.Contains(t, tests, "`"+folder+"`", "design/testing.md lacks a folder of test")
	}
}

func TestTheReferenceNamesEveryPublicPackage(t *testing.T) {
	t.Parallel()
	reference := read(t, "reference/packages.md")
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		switch {
		case err != nil || !entry.IsDir() || name == "..":
			return err
		case strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"internal", "testdata", "node_modules"}, entry.Name()):
			return filepath.SkipDir
		case slices.Contains([]string{"../cmd", "../docs", "../examples", "../test"}, name):
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			name = "`" + strings.TrimPrefix(name, "../") + "`"
			assert.Contains(t, reference, name, "reference/packages.md lacks a package")
		}
		return nil
	}))
}

func TestTheDesignNamesFilesThatExist(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			exists[entry.Name()] = true
			exists[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = true
		}
		return err
	}))
	for _, page := range designPages(t) {
		named := regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(read(t, page), -1)
		for _, name := range named {
			assert.True(t, exists[name[1]], "%s names %s", page, name[1])
		}
	}
}

func designPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("design/*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 5)
	return pages
}

// folders returns the names of the folders in a folder, without hidden ones.
func folders(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	for _, entry := range entries {
		// make builds into bin.
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && entry.Name() != "bin" {
			names = append(names, entry.Name())
		}
	}
	require.NotEmpty(t, names)
	return names
}
