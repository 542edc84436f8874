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
	c := &campaign.Campaign{
		Name: "soak", Unit: "commits", Notes: stderr,
		World: func(ctx context.Context, number uint64) (campaign.Report, error) {
			return soak.World{Seed: *seed, Number: number, Layout: journal.Layout(*layout)}.Run(ctx)
		},
		Flags: func(number uint64) string {
			name := fmt.Sprintf("-seed %d -world %d", *seed, number)
			if *layout != "" {
				name += " -layout " + *layout
			}
			return name
		},
	}
	if *world >= 0 {
		c.RunOne(ctx, uint64(*world))
	} else {
		c.Run(ctx, *parallel, *commits)
	}
	code := c.End()
	_, _ = fmt.Fprintf(stdout, "soak commits=%d lost=%d gaps=%d wrong=%d stuck=%d seed=%d\n",
		c.Count(), c.Found(soak.Lost), c.Found(soak.Gap), c.Found(soak.Wrong), c.Found(soak.Stuck), *seed)
	return code
}
