package main

import (
	"bytes"
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var all = flag.Bool("sim.all", false, "run also what takes minutes: a world twice, and one for each defect made on purpose")

// command is the program of this package, built without the race detector, because with it
// preparing a guest takes minutes.
type command struct{ path, cache string }

func build(t *testing.T) command {
	t.Helper()
	dir := t.TempDir()
	c := command{path: filepath.Join(dir, "sim"), cache: dir}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", c.path, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return c
}

// run returns the exit code and the output of the program.
func (c command) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	run := exec.CommandContext(t.Context(), c.path, append([]string{"-cache", c.cache}, args...)...)
	run.Stdout, run.Stderr = &out, &notes
	err := run.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return run.ProcessState.ExitCode(), out.String(), notes.String()
}

func TestWorlds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the standard library for WebAssembly, which takes a minute the first time")
	}
	sim := build(t)

	t.Run("AFewOfThemHoldEveryPromise", func(t *testing.T) {
		code, out, notes := sim.run(t, "-small", "-deliveries", "500", "-seed", "6")
		assert.Zero(t, code, notes)
		assert.Regexp(t, `^soak deliveries=\d{4,} lost=0 reordered=0 after_flush_duplicates=0 seed=6\n$`, out)
	})

	t.Run("OneDoesTheSameAgain", func(t *testing.T) {
		if !*all {
			t.Skip("left to make soak")
		}
		digest := regexp.MustCompile(`(?m)^sim: .*: digest [0-9a-f]{16}, .*$`)
		_, _, first := sim.run(t, "-small", "-seed", "2", "-world", "0", "-v")
		_, _, second := sim.run(t, "-small", "-seed", "2", "-world", "0", "-v", "-trace")
		require.Regexp(t, digest, first)
		assert.Equal(t, digest.FindString(first), digest.FindString(second), "it must not matter whether somebody looks")
		_, _, other := sim.run(t, "-small", "-seed", "2", "-world", "1", "-v")
		require.Regexp(t, digest, other)
		assert.NotEqual(t, digest.FindString(first), digest.FindString(other))
	})

	sabotages := map[string]string{"shuffle": `reordered`}
	if *all {
		sabotages = map[string]string{
			"skip":     `reordered|lost`,
			"shuffle":  `reordered`,
			"forget":   `after_flush_duplicate`,
			"unfence":  `position|effect`, // an unfenced projection applies an event twice
			"reissue":  `effect`,
			"unguard":  `effect`,
			"unrecord": `passed`,
			"rehandle": `passed`,
			"detach":   `effect`,
			"strand":   `effect`,
			"unstop":   `restless`,
			// Nothing is lost, but some events are late.
			"blink":    `slow`,
			"overlook": `lost`,
			"unrevise": `lost`,
			"rewind":   `after_flush_duplicate`,
			"recall":   `after_flush_duplicate`,
			"overrun":  `reordered|position|lost`,
			"omit":     `archived`,
			"revive":   `removed`,
			"prune":    `effect`,
			"believe":  `lost`,
			"ignore":   `slow`,
			"overtake": `lost`,
			"presume":  `lost`,
			"unstamp":  `effect`,
			"inherit":  `effect`,
		}
	}
	for sabotage, finds := range sabotages {
		t.Run("OneThatIsBrokenOnPurposeIsFoundOut/"+sabotage, func(t *testing.T) {
			code, out, notes := sim.run(t, "-small", "-deliveries", "20000", "-parallel", "1", "-sabotage", sabotage)
			assert.Equal(t, 1, code, out)
			assert.Regexp(t, `(?m)^sim: -seed 1 -world \d+ -small -sabotage `+sabotage+`: \S+ (`+finds+`): `, notes)
			assert.Regexp(t, `(?m)^sim: again: go run ./test/cmd/sim -seed 1 -world \d+ -small -sabotage `+sabotage+` -trace$`, notes)
		})
	}
}

func TestAWrongFlagIsRefused(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"-delivery", "100"}, &out, &notes))
	assert.Empty(t, out.String())
}
