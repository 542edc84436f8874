// Command check runs what a change must pass: lint, the rehearsal of a release, and all tests.
//
//	go run ./test/cmd/check
//	go run ./test/cmd/check -noskip
//	go run ./test/cmd/check [-noskip] PHASE...
//
// It runs in the root folder of the repository, and needs nothing but Go. It finds or starts what
// some phases and tests need besides: a C compiler for the race detector, DynamoDB Local (Docker,
// or Java and npm), Node, Chromium, git, golangci-lint. If something is missing, check skips what
// needs it, and names it in the summary at the end. With -noskip a skip is a failure, and
// golangci-lint is compiled if it is not installed. If phases are named, only those run.
//
// A test that was skipped in one phase and ran in another one is not skipped. A test that another
// command runs, because it takes minutes or writes files, says so with a reason that begins with
// "left to": t.Skip("left to make scale"). The summary lists these tests; they are no failure.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	flags, noskip := newFlags()
	_ = flags.Parse(os.Args[1:]) // it exits at an error
	chosen, err := choose(flags.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := saveTime(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	c := &check{out: os.Stdout, noskip: *noskip, tests: newLedger()}
	c.run(ctx, chosen)
	stop()
	if !c.summary() {
		os.Exit(1)
	}
}

// saveTime sets the environment of the go command. Compilers, linters and tests collect garbage
// less often. Compilers leave out debug information, and use one thread each, as several run at
// once. Without the path of this folder in it, what another clone has compiled need not be compiled
// again. No phase has other results for it.
func saveTime(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		if err := os.Setenv("GOGC", "400"); err != nil {
			return err
		}
	}
	flags, err := output(ctx, "go", "env", "GOFLAGS")
	if err != nil {
		return err
	}
	return os.Setenv("GOFLAGS", flags+" -trimpath '-gcflags=github.com/millrace-dev/...=-dwarf=false -c=1'")
}

// newFlags returns the flags, with their help.
func newFlags() (flags *flag.FlagSet, noskip *bool) {
	flags = flag.NewFlagSet("check", flag.ExitOnError)
	noskip = flags.Bool("noskip", false, "fail if something is skipped")
	flags.Usage = func() {
		out := flags.Output()
		_, _ = fmt.Fprintln(out, "usage: go run ./test/cmd/check [-noskip] [PHASE...]")
		flags.PrintDefaults()
		_, _ = fmt.Fprintln(out, "\nPhases:")
		for _, p := range phases {
			_, _ = fmt.Fprintf(out, "  %-10s %s\n", p.name, p.about)
		}
	}
	return flags, noskip
}

// choose returns the phases of these names, or all of them.
func choose(names []string) ([]phase, error) {
	if len(names) == 0 {
		return phases, nil
	}
	var chosen []phase
	for _, name := range names {
		at := slices.IndexFunc(phases, func(p phase) bool { return p.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no phase %q: -h lists them", name)
		}
		chosen = append(chosen, phases[at])
	}
	return chosen, nil
}

// check is one run of the command.
type check struct {
	out    io.Writer
	noskip bool
	tests  *ledger

	times, skipped, failed []string // lines of the summary
}

func (c *check) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// skip notes something that does not run. It may be called again with the same arguments.
func (c *check) skip(what, why string) {
	if line := what + ": " + why; !slices.Contains(c.skipped, line) {
		c.skipped = append(c.skipped, line)
	}
}

// missing is the error of a phase that cannot run on this machine.
type missing string

func (m missing) Error() string { return string(m) }

func (c *check) run(ctx context.Context, chosen []phase) {
	finish := func() {}
	for n, p := range chosen {
		title := fmt.Sprintf("\n== %d of %d: %s: %s\n", n+1, len(chosen), p.name, p.about)
		if p.beside || p.alone {
			finish()
			finish = func() {}
		}
		if p.beside && n+1 < len(chosen) {
			c.printf("%sruns beside the next phases\n", title)
			finish = c.begin(ctx, p, title)
			continue
		}
		c.perform(ctx, p, title)
	}
	finish()
}

// begin starts a phase beside others. The returned function waits for its end and prints its
// output.
func (c *check) begin(ctx context.Context, p phase, title string) (finish func()) {
	var out bytes.Buffer
	own, done := &check{out: &out, noskip: c.noskip, tests: newLedger()}, make(chan struct{})
	go func() {
		defer close(done)
		own.perform(ctx, p, title)
	}()
	return func() {
		<-done
		c.printf("%s", &out)
		c.times, c.failed = append(c.times, own.times...), append(c.failed, own.failed...)
		c.skipped = append(c.skipped, own.skipped...)
	}
}

func (c *check) perform(ctx context.Context, p phase, title string) {
	if ctx.Err() != nil {
		c.failed = append(c.failed, p.name+": interrupted")
		return
	}
	c.printf("%s", title)
	began := time.Now()
	err := p.do(ctx, c)
	c.times = append(c.times, fmt.Sprintf("%-10s %s", p.name, time.Since(began).Round(time.Second)))
	switch err := err.(type) { //nolint:errorlint // phases return it as it is
	case nil:
	case missing:
		c.printf("skipped: %s\n", err)
		c.skip("phase "+p.name, err.Error())
	default:
		c.printf("FAILED: %s: %v\n", p.name, err)
		c.failed = append(c.failed, p.name+": "+err.Error())
	}
}

// summary prints what was skipped and what failed, and reports whether the check has passed.
func (c *check) summary() (passed bool) {
	skips, left := c.tests.skips()
	skips = append(slices.Clone(c.skipped), skips...)
	ran, not := c.tests.count()
	c.printf("\n== Summary: %d tests have passed, %d have not run\n", ran, not)
	c.list("Times", c.times)
	c.list("Left to other commands", left)
	c.list("Skipped", skips)
	c.list("FAILED", c.failed)
	switch {
	case len(c.failed) > 0:
		c.printf("The check has failed.\n")
		return false
	case len(skips) > 0 && c.noskip:
		c.printf("The check has failed: -noskip lets nothing be skipped.\n")
		return false
	case len(skips) > 0:
		c.printf("All that ran has passed.\n")
	default:
		c.printf("Everything has passed.\n")
	}
	return true
}

func (c *check) list(title string, lines []string) {
	if len(lines) > 0 {
		c.printf("%s:\n  %s\n", title, strings.Join(lines, "\n  "))
	}
}
