package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATestThatAnotherPhaseRunsIsNotSkipped(t *testing.T) {
	t.Parallel()
	c, out := newCheck(true)
	c.observe(t, skipped("TestA", "a_test.go", "needs dynamotest"), skipped("TestB", "a_test.go", "needs Chromium"))
	c.observe(t, passed("TestA"))

	assert.False(t, c.summary())
	assert.Contains(t, out.String(), "1 tests have passed, 1 have not run")
	assert.Contains(t, out.String(), "Skipped:\n  needs Chromium: journal: TestB\n")
	assert.NotContains(t, out.String(), "TestA")
}

func TestATestOfAnotherCommandMayBeSkipped(t *testing.T) {
	t.Parallel()
	c, out := newCheck(true)
	c.observe(t, skipped("TestScale", "a_test.go", "left to make scale"))
	c.observe(t, skipped("TestPubSub/TestReconnect", "test_pubsub.go", "no RestartServiceCommand provided"))

	assert.True(t, c.summary(), out)
	assert.Contains(t, out.String(), "Left to other commands:\n  make scale: journal: TestScale\n")
}

func TestASkipFailsTheCheckOnlyIfNothingMayBeSkipped(t *testing.T) {
	t.Parallel()
	needy := []phase{{name: "interop", do: func(context.Context, *check) error { return missing("it needs npm") }}}
	for _, noskip := range []bool{false, true} {
		c, out := newCheck(noskip)
		c.run(t.Context(), needy)
		assert.Equal(t, !noskip, c.summary())
		assert.Contains(t, out.String(), "Skipped:\n  phase interop: it needs npm\n")
	}
}

func TestHelpDescribesFlagsAndPhases(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	flags, _ := newFlags()
	flags.SetOutput(&out)
	flags.Usage()
	assert.Regexp(t, `(?s)-noskip\s+fail if something is skipped\n\nPhases:\n  prose `, out.String())
}

func TestAPhaseThatFailsDoesNotEndTheCheck(t *testing.T) {
	t.Parallel()
	ran := false
	c, out := newCheck(false)
	c.run(t.Context(), []phase{
		{name: "first", do: func(context.Context, *check) error { return errors.New("exit status 1") }},
		{name: "second", do: func(context.Context, *check) error { ran = true; return nil }},
	})
	assert.False(t, c.summary())
	assert.True(t, ran)
	assert.Contains(t, out.String(), "FAILED:\n  first: exit status 1\n")
}

func TestAPhaseBesideOthersEndsBeforeOneThatMustBeAlone(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), false
	c, out := newCheck(false)
	c.run(t.Context(), []phase{
		{name: "slow", beside: true, do: func(_ context.Context, c *check) error {
			<-begun
			c.printf("slowly\n")
			ended = true
			return errors.New("exit status 1")
		}},
		{name: "other", do: func(context.Context, *check) error {
			close(begun)
			return nil
		}},
		{name: "alone", alone: true, do: func(context.Context, *check) error {
			assert.True(t, ended)
			return nil
		}},
	})
	assert.Regexp(t, `(?s)^\n== 1 of 3: slow: \nruns beside .*== 2 of 3: other.*== 1 of 3: slow: \nslowly\n.*== 3 of 3: alone`, out.String())
	assert.False(t, c.summary())
	assert.Contains(t, out.String(), "FAILED:\n  slow: exit status 1\n")
}

func TestTheOutputOfATestThatFailsIsPrinted(t *testing.T) {
	t.Parallel()
	c, out := newCheck(false)
	c.observe(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"    --- FAIL: TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"quiet\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"Action":"output","Package":"q","Output":"PASS\n"}`,
		`{"Action":"output","Package":"q","Output":"ok  \tq\t0.2s\n"}`,
		`{"Action":"pass","Package":"q"}`, "not JSON")
	assert.Equal(t, "    --- FAIL: TestA\nFAIL\tp\t0.1s\nok  \tq\t0.2s\nnot JSON\n", out.String())
}

// go test attributes a report of the race detector to the test that printed the last line, although
// another one may have caused it.
func TestAReportOfARaceIsPrintedWhicheverTestItIsAttributedTo(t *testing.T) {
	t.Parallel()
	c, out := newCheck(false)
	c.observe(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"--- FAIL: TestB\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestB"}`,
		`{"Action":"fail","Package":"p"}`)
	assert.Equal(t, "WARNING: DATA RACE\n--- FAIL: TestB\n", out.String())
}

// A real run of the go command: one test passes in a package, one is skipped in another one.
func TestTheGoCommandIsRun(t *testing.T) {
	t.Parallel()
	c, out := newCheck(false)
	ran := tests{
		packages: []string{"fmt", "errors"}, except: []string{"fmt"}, args: []string{"-run=^TestNewEqual$"},
	}.run(t.Context(), c)
	require.NoError(t, ran)
	assert.True(t, c.tests.passed[name{"errors", "TestNewEqual"}])
	assert.Regexp(t, `^ok +\terrors\t`, out.String())

	require.Error(t, tests{packages: []string{"./missing"}}.run(t.Context(), c))
}

func TestCIRunsTheCommandOfTheReadme(t *testing.T) {
	t.Parallel()
	for file, wants := range map[string]string{
		"README.md": "\ngo run ./test/cmd/check\n", ".ci/run": "\ngo run ./test/cmd/check -noskip\n",
	} {
		text, err := os.ReadFile("../../../" + file)
		require.NoError(t, err)
		assert.Contains(t, string(text), wants, file)
	}
}

func TestTheMakefileNamesPhasesThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^\tgo run \./test/cmd/check(.*)$`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, found)
	for _, command := range found {
		names := slices.DeleteFunc(strings.Fields(command[1]), func(arg string) bool { return strings.HasPrefix(arg, "-") })
		_, err := choose(names)
		assert.NoError(t, err, command[0])
	}
}

func TestAnUnknownPhaseIsRefused(t *testing.T) {
	t.Parallel()
	all, err := choose(nil)
	require.NoError(t, err)
	assert.Len(t, all, len(phases))
	_, err = choose([]string{"lint", "unknown"})
	require.ErrorContains(t, err, "unknown")
}

func newCheck(noskip bool) (*check, *strings.Builder) {
	out := &strings.Builder{}
	return &check{out: out, noskip: noskip, tests: newLedger()}, out
}

// observe reads lines of `go test -json`.
func (c *check) observe(t *testing.T, lines ...string) {
	t.Helper()
	require.NoError(t, c.tests.read(strings.NewReader(strings.Join(lines, "\n")+"\n"), c.out))
}

func passed(test string) string {
	return `{"Action":"pass","Package":"github.com/millrace-dev/millrace/journal","Test":"` + test + `"}`
}

func skipped(test, file, why string) string {
	of := `"Package":"github.com/millrace-dev/millrace/journal","Test":"` + test + `"`
	return `{"Action":"output",` + of + `,"Output":"    ` + file + `:24: ` + why + `\n"}` + "\n" + `{"Action":"skip",` + of + `}`
}
