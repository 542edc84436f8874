//go:build unix

package tutorial

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step is something that a page asks the reader to do.
type step struct {
	// kind is that of the marker before a block:
	//
	//	<!-- file: NAME -->       the block is the content of a file
	//	<!-- run -->              its commands are run, one after the other
	//	<!-- poll -->             they are run again until they print the output
	//	<!-- start -->            the last one is left running
	//	<!-- prints: COMMAND -->  a command that is running prints the block
	//	<!-- not run -->          it is not tested
	//	<!-- on AWS -->           its commands would change tables on AWS, so no test may run them
	//	<!-- FILE.go -->          the block is a part of that file; package docs compares them
	//
	// These markers have no block:
	//
	//	<!-- stop: COMMAND -->    Ctrl+C; then the command prints the output and ends
	//	<!-- kill: COMMAND -->    Ctrl+C
	kind, argument string
	text           string
	output         string // of the block that follows "Output:"
	part           bool   // the output is a part: it follows a line such as "Output, two rows:"
	line           int
}

var (
	marker = regexp.MustCompile(`<!-- (file|run|poll|start|prints|not run|on AWS|\S+\.go|stop|kill)(?:: (.+?))? -->`)
	fence  = regexp.MustCompile("^( *)```([a-z]*)$")
)

// parse returns the steps of a page. Each block needs a marker, or is an output.
func parse(page string) (steps []step, err error) {
	var marked *step
	previous := "" // the last line before this one that is not empty
	lines := strings.Split(page, "\n")
	for n := 0; n < len(lines); n++ {
		for _, found := range marker.FindAllStringSubmatch(lines[n], -1) {
			next := step{kind: found[1], argument: found[2], line: n + 1}
			if next.kind == "stop" || next.kind == "kill" {
				steps = append(steps, next)
				continue
			}
			marked = &next
		}
		opened := fence.FindStringSubmatch(lines[n])
		if opened == nil {
			if line := strings.TrimSpace(lines[n]); line != "" {
				previous = line
			}
			continue
		}
		first := n + 1
		for n++; n < len(lines) && lines[n] != opened[1]+"```"; n++ {
			lines[n] = strings.TrimPrefix(lines[n], opened[1])
		}
		text := strings.Join(lines[first:min(n, len(lines))], "\n") + "\n"
		switch {
		case n >= len(lines):
			return nil, fmt.Errorf("line %d: the block does not end", first)
		case marked != nil:
			marked.text = text
			steps = append(steps, *marked)
			marked = nil
		case strings.HasPrefix(previous, "Output") && len(steps) > 0:
			steps[len(steps)-1].output, steps[len(steps)-1].part = text, previous != "Output:"
		default:
			return nil, fmt.Errorf("line %d: the block has no marker, so nothing tests it", first)
		}
		previous = ""
	}
	return steps, nil
}

func TestAPageIsParsed(t *testing.T) {
	t.Parallel()
	steps, err := parse(strings.ReplaceAll(`# A page
<!-- file: a/b.go -->
'''go
package b
'''
1. Run it:

   <!-- run -->
   '''bash
   go run .
   '''

   Output:

   '''text
   hello
   '''
Press Ctrl+C. <!-- stop: go run . -->
`, "'''", "```"))
	require.NoError(t, err)
	assert.Equal(t, []step{
		{kind: "file", argument: "a/b.go", text: "package b\n", line: 2},
		{kind: "run", text: "go run .\n", output: "hello\n", line: 8},
		{kind: "stop", argument: "go run .", line: 18},
	}, steps)
}

func TestABlockThatNothingTestsIsNoticed(t *testing.T) {
	t.Parallel()
	_, err := parse("# A page\n\n```bash\ngo run .\n```\n")
	require.ErrorContains(t, err, "line 3")
	_, err = parse("<!-- run -->\n```bash\ngo run .\n")
	require.ErrorContains(t, err, "does not end")
}

// varies are the parts of an output that differ between runs.
var varies = regexp.MustCompile(`\b\d+\.\d+s$|\(cached\)$|^Date: .*$`)

// matches reports whether an output is as a page shows it. In the page, "..." stands for any text.
// A line of only "..." stands for any number of lines.
func matches(want, got string) bool {
	pattern := "^"
	for _, line := range normal(want) {
		if line == "..." {
			pattern += "(.*\n)*"
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*") + "\n"
	}
	return regexp.MustCompile(pattern + "$").MatchString(strings.Join(normal(got), "\n") + "\n")
}

// normal returns lines without what varies, without spaces at their ends, and without empty lines
// at the end.
func normal(output string) []string {
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		lines[i] = varies.ReplaceAllString(strings.TrimRight(line, " \t\r"), "VARIES")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func TestAnOutputIsComparedWithThePage(t *testing.T) {
	t.Parallel()
	assert.True(t, matches("ok  \ta\t0.005s\nlast\n", "ok  \ta\t(cached)\nlast"))
	assert.True(t, matches("...\nmetric{...} 0\n...\n", "one\ntwo\nmetric{group=\"a\"} 0\nthree\n"))
	assert.False(t, matches("first\nlast\n", "first\n"))
	assert.False(t, matches("first\n", "first\nlast\n"))
	assert.False(t, matches("a.c\n", "abc\n"))
}
