package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "../../docs/reference/benchmarks.md"

var update = flag.Bool("update", false, "write the table of units in docs/reference/benchmarks.md")

func TestThePageOfBenchmarksSaysWhatPeersCost(t *testing.T) {
	t.Parallel()
	if os.Getenv("MILLRACE_INTEROP") == "" {
		t.Skip("needs Node 20 and npm: make interop")
	}
	contenders, stop, err := start(t.Context(), ".", nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, stop()) }()
	costs, err := countUnits(t.Context(), contenders)
	require.NoError(t, err)
	var behind []string
	for _, l := range costs.leads() {
		behind = append(behind, l.operation)
	}
	last := []string{"next event, with a snapshot"}
	assert.Equal(t, last, slices.Compact(behind), "the rows in which packed is not first, as the page says: %v", costs.leads())

	stored, err := os.ReadFile(page)
	require.NoError(t, err)
	const begin, end = "<!-- peers -->\n", "<!-- /peers -->"
	before, rest, found := strings.Cut(string(stored), begin)
	require.True(t, found, "the page has %q", begin)
	old, after, found := strings.Cut(rest, end)
	require.True(t, found, "the page has %q", end)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+costs.table()+end+after), 0o644))
		return
	}
	assert.Equal(t, costs.table(), old, "units have changed: see whether they should, and run MILLRACE_INTEROP=1 go test ./test/peers -update")
}
