//go:build unix

// Command chaos kills consumer processes at random, as package chaos describes. Its last line is
//
//	chaos kills=N deliveries=N lost=0 reordered=0 effects_wrong=0 seed=S
//
// It needs a DynamoDB Local, which `make chaos` starts. Findings are printed to standard error,
// with the places in the logs. If there are findings, the exit code is 1, and the folder with the
// logs of the run is kept.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/chaos"
)

func main() {
	if code, isMember := chaos.MemberMain(os.Stderr); isMember {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// mostShown is the number of findings of a kind that are printed.
const mostShown = 10

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	minutes := flags.Float64("minutes", 3, "how long to write and to disrupt members")
	seed := flags.Uint64("seed", 1, "seed of all random choices")
	layout := flags.String("layout", "", "the `layout` of the journal; drawn if empty")
	fault := flags.String("fault", "", "mistake that members make on purpose: `ack-first` or unfenced")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	complain := func(err error) int {
		_, _ = fmt.Fprintln(stderr, "chaos:", err)
		return 1
	}
	endpoint := dynamolocal.EndpointFromEnv()
	if endpoint == "" {
		return complain(fmt.Errorf("%s is not set: run `make chaos`, which starts a DynamoDB Local", dynamolocal.EndpointEnv))
	}
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return complain(err)
	}
	report, err := chaos.Run(ctx, chaos.Config{
		Endpoint: endpoint, Dir: dir, Seed: *seed, Layout: journal.Layout(*layout), Fault: chaos.Fault(*fault), Notes: stderr,
		Duration: time.Duration(*minutes * float64(time.Minute)),
	})
	if err != nil {
		if ctx.Err() != nil {
			// Requests that were cancelled have other errors.
			err = ctx.Err()
		}
		return complain(fmt.Errorf("%w; the logs are in %s", err, dir))
	}
	_, _ = fmt.Fprintln(stderr, "chaos:", campaign.Ranking(report.Seen))
	shown := map[chaos.Kind]int{}
	for _, f := range report.Findings {
		if shown[f.Kind]++; shown[f.Kind] <= mostShown {
			_, _ = fmt.Fprintf(stderr, "chaos: %s: %s\n", f.Kind, f.Text)
		}
	}
	_, _ = fmt.Fprintln(stdout, report.Summary(*seed))
	if len(report.Findings) > 0 {
		_, _ = fmt.Fprintf(stderr, "chaos: the logs are in %s\n", dir)
		return 1
	}
	if err := os.RemoveAll(dir); err != nil {
		return complain(err)
	}
	return 0
}
