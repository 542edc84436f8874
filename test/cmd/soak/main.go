// Command soak runs worlds of package soak until there were enough commits. Its last line is
//
//	soak commits=N lost=0 gaps=0 wrong=0 stuck=0 seed=S
//
// Commits are the commits in the journals. Findings are printed to standard error, with their world
// and the command that runs it alone. If there are findings, the exit code is 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/soak"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	commits := flags.Int("commits", 1_000_000, "minimum number of commits")
	seed := flags.Uint64("seed", 1, "seed of all worlds")
	world := flags.Int64("world", -1, "the only world to run; all if negative")
	layout := flags.String("layout", "", "the layout of all worlds; drawn if empty")
	// Many more than there are processors, since pauses between attempts take real time.
	parallel := flags.Int("parallel", 16*runtime.GOMAXPROCS(0), "number of concurrent worlds")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	// Worlds have many pointers. Less frequent garbage collection saves a quarter of the time.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	s := &sum{stderr: stderr, seed: *seed, layout: journal.Layout(*layout), kinds: map[soak.Kind]int{}, seen: map[string]int{}, start: time.Now()}
	if *world >= 0 {
		s.world(ctx, uint64(*world))
	} else {
		stop := campaign.Progress(stderr, s.progress)
		campaign.Run(ctx, *parallel, func() bool { return s.enough(*commits) }, s.world)
		stop()
	}
	s.remark()
	_, _ = fmt.Fprintf(stdout, "soak commits=%d lost=%d gaps=%d wrong=%d stuck=%d seed=%d\n",
		s.commits, s.kinds[soak.Lost], s.kinds[soak.Gap], s.kinds[soak.Wrong], s.kinds[soak.Stuck], *seed)
	if s.failed || s.findings() > 0 {
		return 1
	}
	return 0
}

// sum is the sum of the results of all worlds so far.
type sum struct {
	stderr io.Writer
	seed   uint64
	layout journal.Layout
	start  time.Time

	mu                           sync.Mutex
	commits, events, done, shown int
	kinds                        map[soak.Kind]int
	seen                         map[string]int
	failed                       bool
}

// enough reports whether to stop. It also stops when there are findings.
func (s *sum) enough(commits int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed || s.commits >= commits || s.shown >= mostShown
}

// mostShown is the number of findings that are printed.
const mostShown = 20

func (s *sum) world(ctx context.Context, number uint64) {
	report, err := soak.World{Seed: s.seed, Number: number, Layout: s.layout}.Run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = true
		if ctx.Err() == nil { // not interrupted
			_, _ = fmt.Fprintf(s.stderr, "soak: world %d: %v\n", number, err)
		}
		return
	}
	if len(report.Findings) > 0 {
		_, _ = fmt.Fprintf(s.stderr, "soak: after %d commits; again: go run ./test/cmd/soak -seed %d -world %d%s\n",
			s.commits+report.Commits, s.seed, number, s.again())
	}
	s.commits, s.events, s.done = s.commits+report.Commits, s.events+report.Events, s.done+1
	for _, f := range report.Findings {
		s.kinds[f.Kind]++
		if s.shown++; s.shown <= mostShown {
			_, _ = fmt.Fprintf(s.stderr, "soak: seed %d world %d: %s: %s\n", s.seed, number, f.Kind, f.Text)
		}
	}
	for what, n := range report.Seen {
		s.seen[what] += n
	}
}

// again returns the flag for the layout, if one was set.
func (s *sum) again() string {
	if s.layout == "" {
		return ""
	}
	return " -layout " + string(s.layout)
}

func (s *sum) findings() (n int) {
	for _, of := range s.kinds {
		n += of
	}
	return n
}

// progress is a line about the worlds so far.
func (s *sum) progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("soak: %v: %d worlds, %d commits, %d events, %d findings",
		time.Since(s.start).Round(time.Second), s.done, s.commits, s.events, s.findings())
}

// remark prints what happened, so that a reader notices when something never did.
func (s *sum) remark() {
	_, _ = fmt.Fprintf(s.stderr, "soak: %d worlds, %d events in %v: %s\n", s.done, s.events,
		time.Since(s.start).Round(time.Second), campaign.Ranking(s.seen))
}
