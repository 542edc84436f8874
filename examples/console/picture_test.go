package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/journal"
)

var picture = flag.String("picture", "", "folder for pictures of the pages, as the docs show them")

func TestPicture(t *testing.T) {
	if *picture == "" {
		t.Skip("left to make pictures")
	}
	w, err := newWorld(journal.Packed, false)
	require.NoError(t, err)
	for name, of := range map[string]struct {
		link, sees string
		options    []browsertest.Option
	}{
		"console-overview.png":  {w.url, "overdue", []browsertest.Option{browsertest.Window(1180, 1000, 1)}},
		"console-aggregate.png": {w.page("aggregate", "type", "order", "id", "web-1"), "Change of the state", []browsertest.Option{browsertest.Window(1180, 900, 1)}},
		"console-group.png":     {w.page("group", "name", "ledger", "topic", "order"), "Shards", []browsertest.Option{browsertest.Window(1180, 1000, 1), browsertest.Dark}},
	} {
		u := chromium.User(t, name, append(of.options, browsertest.Still)...)
		u.Open(of.link)
		u.Sees(of.sees)
		require.NoError(t, os.WriteFile(filepath.Join(*picture, name), u.Picture(), 0o644)) //nolint:gosec // for everybody
	}
}
