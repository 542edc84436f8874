package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

func TestGoSnippetsAreCompleteFilesWithoutInternalPackages(t *testing.T) {
	t.Parallel()
	const program = "package main\n\nfunc main() {}\n"
	page := "# Title\n```\nnot Go\n```\ntext\n```go\n" + program + "```\n```go\n" + program + "```\n"
	snippets, err := goSnippets([]byte(page))
	require.NoError(t, err)
	require.Len(t, snippets, 2)
	assert.Equal(t, program, string(snippets[1]))

	for want, page := range map[string]string{
		"is not a complete file":      "\n```go\nx := 1\n```\n",
		"does not end":                "\n```go\npackage main\n",
		"which users cannot":          "\n```go\npackage main\n\nimport \"example.com/a/internal/b\"\n```\n",
		"snippet 2 is not a complete": page[:strings.LastIndex(page, "package")] + "func f() {}\n```\n",
	} {
		_, err := goSnippets([]byte(page))
		assert.ErrorContains(t, err, want)
	}
}

func TestTheModulesHaveNoneOfEachOthersFiles(t *testing.T) {
	t.Parallel()
	root, err := readModule(t.Context(), "../../..", ".")
	require.NoError(t, err)
	command, err := readModule(t.Context(), "../../..", commandFolder)
	require.NoError(t, err)

	assert.Equal(t, rootPath, root.path)
	assert.Equal(t, commandPath, command.path)
	assert.Contains(t, root.files, "aggregate/doc.go")
	assert.Contains(t, command.files, "main.go")
	assert.Equal(t, root.files["LICENSE"], command.files["LICENSE"])
	for name := range root.files {
		for _, folder := range []string{"cmd/millrace/", "examples/", "test/", "bin/"} {
			assert.False(t, strings.HasPrefix(name, folder), name)
		}
	}
}

func TestEachContentHasAVersionOfItsOwn(t *testing.T) {
	t.Parallel()
	m := small()
	first := rehearsalVersion(m)
	assert.True(t, semver.IsValid(first))
	assert.Equal(t, first, rehearsalVersion(small()))
	m.files["a.go"] = []byte("package other\n")
	assert.NotEqual(t, first, rehearsalVersion(m))
}

func TestWhatMustNotBeReleasedIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, small().validate())
	for want, change := range map[string]func(*released){
		"replace": func(m *released) {
			m.files["go.mod"] = append(m.files["go.mod"], "replace example.com/b => ../b\n"...)
		},
		"contains another module": func(m *released) { m.files["b/go.mod"] = []byte("module example.com/a/b\n") },
		"more than":               func(m *released) { m.files["big.bin"] = make([]byte, maxFile+1) },
	} {
		m := small()
		change(m)
		assert.ErrorContains(t, m.validate(), want)
	}
}

func TestTheProxyHasTheZipThatSumsAreOf(t *testing.T) {
	t.Parallel()
	p := proxy(t.TempDir())
	require.NoError(t, p.add(small(), "v1.0.0"))
	sums, err := p.sums("example.com/a", "v1.0.0")
	require.NoError(t, err)
	require.Len(t, sums, 2)
	assert.Regexp(t, `^example\.com/a v1\.0\.0 h1:`, sums[0])
	assert.Regexp(t, `^example\.com/a v1\.0\.0/go\.mod h1:`, sums[1])

	other := small()
	other.files["Capital.go"], other.files["capital.go"] = nil, nil
	assert.Error(t, p.add(other, "v1.0.1"), "names that collide where case does not count")
}

func TestARequirementIsReplacedAndCanBeRestored(t *testing.T) {
	t.Parallel()
	m := small()
	before := m.clone()
	require.NoError(t, m.require("example.com/b", "v1.2.0", []string{"example.com/b v1.2.0 h1:x", "example.com/b v1.2.0/go.mod h1:y"}))
	assert.Contains(t, string(m.files["go.mod"]), "example.com/b v1.2.0")
	assert.Equal(t, "example.com/b v1.2.0 h1:x\nexample.com/b v1.2.0/go.mod h1:y\nexample.com/c v1.0.0 h1:z\n", string(m.files["go.sum"]))

	version, sums, err := before.required("example.com/b")
	require.NoError(t, err)
	require.NoError(t, m.require("example.com/b", version, sums))
	assert.Equal(t, before.files, m.files)
}

func TestSumsAreInTheOrderOfTheirVersions(t *testing.T) {
	t.Parallel()
	sorted := []string{"a v1.3.0/go.mod h1:x", "a v1.12.1 h1:y", "a v1.12.1/go.mod h1:z", "b v0.1.0 h1:x"}
	assert.Equal(t, sorted, inOrderOfTidy([]string{sorted[3], sorted[2], sorted[1], sorted[0]}))
}

// small returns a module that can be released.
func small() *released {
	return &released{path: "example.com/a", folder: ".", files: map[string][]byte{
		"go.mod": []byte("module example.com/a\n\ngo 1.24\n\nrequire example.com/b v1.0.0\n"),
		"go.sum": []byte("example.com/b v1.0.0 h1:b\nexample.com/c v1.0.0 h1:z\n"),
		"a.go":   []byte("package a\n"),
	}}
}
