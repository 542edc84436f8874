package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInitWritesAServiceAndSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	s := setup(t)
	dir := filepath.Join(t.TempDir(), "shop")
	out := s.ok(t, "init", "ticket-shop", "--dir", dir, "--replace", "../../../..")
	assert.Contains(t, out, "files to "+dir)
	assert.Contains(t, out, "cd "+dir)
	assert.FileExists(t, filepath.Join(dir, "main.go"))

	var line struct {
		Kind, Dir, Module, Target string
		Files                     []string
	}
	dir = filepath.Join(t.TempDir(), "shop")
	out = s.ok(t, "init", "ticket-shop", "--dir", dir, "--replace", "../../../..", "--target", "lambda", "--module", "example.org/shop", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &line))
	assert.Equal(t, "init example.org/shop lambda "+dir, line.Kind+" "+line.Module+" "+line.Target+" "+line.Dir)
	for _, file := range line.Files {
		assert.FileExists(t, filepath.Join(dir, file))
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "module example.org/shop\n")
}
