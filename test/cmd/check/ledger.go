package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/millrace-dev/millrace/"

// A name is that of a test, or of its package if test is empty.
type name struct{ pkg, test string }

// ledger knows what became of each test in all phases.
type ledger struct {
	passed  map[name]bool
	reasons map[name]string // of tests that were skipped
}

func newLedger() *ledger { return &ledger{passed: map[name]bool{}, reasons: map[name]string{}} }

// event is a line of `go test -json`; see `go doc test2json`.
type event struct{ Action, Package, Test, Output string }

// read reads the output of `go test -json`. It prints a line for each package, and the output of
// what failed.
func (l *ledger) read(from io.Reader, to io.Writer) error {
	printed := map[name]string{}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if line != "" {
			if json.Unmarshal([]byte(line), &e) == nil {
				l.observe(e, printed, to)
			} else {
				_, _ = io.WriteString(to, line)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (l *ledger) observe(e event, printed map[name]string, to io.Writer) {
	of := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		_, _ = io.WriteString(to, e.Output)
	case "output":
		printed[of] += e.Output
	case "pass", "skip":
		switch {
		case e.Test == "" && e.Action == "pass":
			_, _ = io.WriteString(to, lastLine(printed[of]))
		case e.Test != "" && e.Action == "pass":
			l.passed[of] = true
		case e.Test != "":
			l.reasons[of] = reason(printed[of])
		}
		if !strings.Contains(printed[of], aRace) {
			delete(printed, of)
		}
	case "fail":
		if e.Test == "" {
			report(e.Package, printed, to)
		}
	}
}

// aRace begins a report of the race detector. It may be in the output of a test that passed.
const aRace = "WARNING: DATA RACE"

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:] + "\n"
}

// report prints what the tests of a package have printed that have not passed, or that have seen a
// race, and then what the package itself has.
func report(pkg string, printed map[name]string, to io.Writer) {
	of := func(n name) bool { return n.pkg == pkg }
	names := slices.DeleteFunc(slices.Collect(maps.Keys(printed)), func(n name) bool { return !of(n) || n.test == "" })
	slices.SortFunc(names, func(a, b name) int { return strings.Compare(a.test, b.test) })
	for _, n := range append(names, name{pkg: pkg}) {
		_, _ = io.WriteString(to, printed[n])
		delete(printed, n)
	}
}

// aSkip is the line with which a test is skipped. testing indents it with 4 spaces for each level.
var aSkip = regexp.MustCompile(`(?m)^ +([\w.-]+\.go):\d+: (.*)$`)

// ofWatermill is the file of Watermill's suite for Pub/Subs. It skips tests of features that a
// Pub/Sub is not configured for. Package test/suite runs it with several configurations.
const ofWatermill = "test_pubsub.go"

// reason returns why a test was skipped, from its output; "" if Watermill's suite has decided it.
func reason(output string) string {
	found := aSkip.FindAllStringSubmatch(output, -1)
	if len(found) == 0 {
		return "it says no reason"
	}
	if last := found[len(found)-1]; last[1] != ofWatermill {
		return last[2]
	}
	return ""
}

// count returns the number of tests that passed and of those that no phase has run.
func (l *ledger) count() (passed, skipped int) {
	for n, why := range l.reasons {
		if why != "" && !l.passed[n] {
			skipped++
		}
	}
	return len(l.passed), skipped
}

// skips returns a line for each reason and package with the tests that no phase has run. Those of
// left are run by other commands.
func (l *ledger) skips() (skipped, left []string) {
	tests := map[[2]string][]string{}
	for n, why := range l.reasons {
		if why != "" && !l.passed[n] {
			key := [2]string{why, strings.TrimPrefix(n.pkg, module)}
			tests[key] = append(tests[key], n.test)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(tests), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		slices.Sort(tests[key])
		line := fmt.Sprintf("%s: %s: %s", key[0], key[1], strings.Join(tests[key], ", "))
		if of, ok := strings.CutPrefix(line, "left to "); ok {
			left = append(left, of)
		} else {
			skipped = append(skipped, line)
		}
	}
	return skipped, left
}
