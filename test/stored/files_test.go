package stored

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	expectedFile = "expected.json"
	archiveFile  = "archive.jsonl"

	compressFrom = 50 << 10 // bytes
)

// write writes a file of a fixture, compressed if it is large.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if len(content) > compressFrom {
		var compressed bytes.Buffer
		w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(content)
		require.NoError(t, errors.Join(err, w.Close()))
		path, content = path+".gz", compressed.Bytes()
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644)) //nolint:gosec // the files are committed
}

// read returns the content of a file that write has written.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path) //nolint:gosec // the path is one of the fixtures
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
		return content
	}
	compressed, err := os.Open(path + ".gz") //nolint:gosec // as above
	require.NoError(t, err)
	defer compressed.Close()
	r, err := gzip.NewReader(compressed)
	require.NoError(t, err)
	content, err = io.ReadAll(r)
	require.NoError(t, err)
	return content
}
