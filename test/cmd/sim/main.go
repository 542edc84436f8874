// Command sim runs worlds of package test/sim until there were enough deliveries. Its last line is
//
//	soak deliveries=N lost=0 reordered=0 after_flush_duplicates=0 seed=S
//
// Findings are printed to standard error, with their world, the last events in it, and the command
// that runs that world again with the same result. If there are findings, the exit code is 1.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/sim"
	"github.com/millrace-dev/millrace/test/sim/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	deliveries := flags.Int("deliveries", 10_000_000, "minimum number of messages to deliver")
	seed := flags.Uint64("seed", 1, "seed of all worlds")
	world := flags.Int64("world", -1, "the only world to run; all if negative")
	small := flags.Bool("small", false, "run worlds of a tenth of the size")
	trace := flags.Bool("trace", false, "print all events of the world to standard error")
	verbose := flags.Bool("v", false, "print a line for each world")
	sabotage := flags.String("sabotage", "", fmt.Sprintf("break something on purpose: one of %v", sim.Sabotages))
	disrupt := flags.String("disrupt", "", fmt.Sprintf("disruptions that all worlds have, separated by commas: of %v, or none; drawn if empty", sim.Disruptions))
	layout := flags.String("layout", "", "the layout of the journal in all worlds; drawn if empty")
	cache := flags.String("cache", "", "directory that caches the compiled program for the next run; none if empty")
	parallel := flags.Int("parallel", runtime.GOMAXPROCS(0), "number of concurrent worlds")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	m, err := prepare(ctx, *cache)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "sim:", err)
		return 1
	}
	defer func() { _ = m.Close(ctx) }()
	like := sim.World{Seed: *seed, Small: *small, Sabotage: sim.Sabotage(*sabotage), Disrupt: *disrupt, Layout: journal.Layout(*layout)}
	if *world >= 0 && *trace {
		like.Trace = stderr
	}
	numbered := func(number uint64) sim.World {
		w := like
		w.Number = number
		return w
	}
	c := &campaign.Campaign{
		Name: "sim", Unit: "deliveries", Notes: stderr, Verbose: *verbose, Again: " -trace",
		World: func(ctx context.Context, number uint64) (campaign.Report, error) {
			return runWorld(ctx, m, numbered(number))
		},
		Flags: func(number uint64) string { return strings.Join(arguments(numbered(number)), " ") },
	}
	if *world >= 0 {
		c.RunOne(ctx, uint64(*world))
	} else {
		c.Run(ctx, *parallel, *deliveries)
	}
	code := c.End()
	_, _ = fmt.Fprintf(stdout, "soak deliveries=%d lost=%d reordered=%d after_flush_duplicates=%d seed=%d\n",
		c.Count(), c.Found(sim.Lost), c.Found(sim.Reordered), c.Found(sim.Repeated), *seed)
	return code
}

// prepare builds the program that runs a world, and a machine for it. If there is a directory, it
// caches the compiled program there.
func prepare(ctx context.Context, dir string) (*machine.Machine, error) {
	cache := dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "sim"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	program := filepath.Join(dir, "guest.wasm")
	// Paths of this machine must not be part of the program, or it would differ on another machine.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, guest)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	var out bytes.Buffer
	build.Stderr = &out
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", guest, err, out.Bytes())
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	return machine.New(ctx, code, cache)
}

const guest = "github.com/millrace-dev/millrace/test/sim/guest"
