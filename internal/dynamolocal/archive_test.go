package dynamolocal

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExtractWritesTheFilesOfTheFolderAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	archive := archiveOf(t,
		file{name: "package/LICENSE", content: "outside"},
		file{name: "package/emulator/", kind: tar.TypeDir},
		file{name: "package/emulator/a.jar", content: "a"},
		file{name: "package/emulator/lib/deep/b.jar", content: "b"},
		file{name: "package/emulator-else/c.jar", content: "outside too"})

	require.NoError(t, extract(bytes.NewReader(archive), "package/emulator/", dir))

	got := map[string]string{}
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(rel)] = string(content)
		return err
	}))
	assert.Equal(t, map[string]string{"a.jar": "a", "lib/deep/b.jar": "b"}, got)
}

func TestExtractRefusesWhatLeadsOutOfItsFolder(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]file{
		"a parent":        {name: "package/emulator/../../evil", content: "x"},
		"a hidden parent": {name: "package/emulator/lib/../../evil", content: "x"},
		"an absolute":     {name: "package/emulator//evil", content: "x"},
		"a symbolic link": {name: "package/emulator/evil", content: "/etc", kind: tar.TypeSymlink},
		"a hard link":     {name: "package/emulator/evil", content: "/etc/passwd", kind: tar.TypeLink},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			archive := archiveOf(t, entry)

			err := extract(bytes.NewReader(archive), "package/emulator/", filepath.Join(parent, "a", "b"))
			require.Error(t, err, "the parent of the folder is missing")
			require.NoError(t, os.Mkdir(filepath.Join(parent, "a"), 0o755))
			err = extract(bytes.NewReader(archive), "package/emulator/", filepath.Join(parent, "a", "b"))

			require.ErrorContains(t, err, "refuse")
			assert.NoFileExists(t, filepath.Join(parent, "evil"))
			assert.NoFileExists(t, filepath.Join(parent, "a", "evil"))
		})
	}
}

func TestExtractRefusesATruncatedArchive(t *testing.T) {
	t.Parallel()
	archive := archiveOf(t, file{name: "package/emulator/a.jar", content: "content"})
	err := extract(bytes.NewReader(archive[:len(archive)/2]), "package/emulator/", filepath.Join(t.TempDir(), "out"))
	require.Error(t, err)
}

func TestTreeDigestTellsNamesAndContents(t *testing.T) {
	t.Parallel()
	digest := func(files map[string]string) string {
		dir := t.TempDir()
		for name, content := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		d, err := treeDigest(dir)
		require.NoError(t, err)
		return d
	}
	base := digest(map[string]string{"a": "1", "b": "2"})
	assert.Equal(t, base, digest(map[string]string{"a": "1", "b": "2"}), "equal files")
	assert.NotEqual(t, base, digest(map[string]string{"a": "2", "b": "1"}), "contents exchanged")
	assert.NotEqual(t, base, digest(map[string]string{"a": "1", "c": "2"}), "a file renamed")
	assert.NotEqual(t, base, digest(map[string]string{"a": "1"}), "a file missing")
	assert.NotEqual(t, base, digest(map[string]string{"a": "1", "b": "2", "c": ""}), "an empty file too many")
}
