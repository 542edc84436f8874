// Command bench compares the library with the bare SDK doing the same work on the same tables in
// the same run. The two alternate in pairs, so that a slow machine slows both, and the median of
// the pairs counts. It prints one line `ratio NAME VALUE` for each benchmark. Lines that begin with
// # are remarks.
//
//	make bench
//
// MILLRACE_DYNAMODB_ENDPOINT is the endpoint. For versus-sql, the program looks for PostgreSQL in
// Debian's folder and in the PATH.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal"
)

type bench struct {
	client    *dynamodb.Client
	accessKey string // names the database on DynamoDB Local
	j         *journal.Journal
	pairs     int // for work that takes milliseconds
	many      int // for work that takes longer
}

func main() {
	pairs := flag.Int("pairs", 1000, "pairs for work that takes milliseconds")
	many := flag.Int("long-pairs", 21, "pairs for work that takes longer")
	only := flag.String("only", "", "names of the benchmarks to run, with commas between; all by default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	work := func() error { return run(ctx, *pairs, *many, *only) }
	if order := os.Getenv(writerEnv); order != "" {
		work = func() error { return write(ctx, order) }
	}
	err := work()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pairs, many int, only string) error {
	endpoint := dynamolocal.EndpointFromEnv()
	if endpoint == "" {
		return errors.New("no DynamoDB: run `make bench`, which starts one")
	}
	if pairs < 1 || many < 1 {
		return errors.New("-pairs and -long-pairs must be at least 1")
	}
	key := rand.Text()
	b := &bench{client: dynamolocal.NewClient(endpoint, key), accessKey: key, pairs: pairs, many: many}
	if err := journal.Create(ctx, b.client, journal.Config{Layout: journal.Classic, Shards: 16}); err != nil {
		return err
	}
	j, err := journal.Open(ctx, b.client, journal.Config{})
	if err != nil {
		return err
	}
	b.j = j
	for _, one := range []struct {
		name string
		run  func(context.Context) error
	}{
		// First, while the emulator is as tests find it. It becomes faster with time.
		{"dynamotest-commit", b.memoryCommit},
		{"dynamotest-item", b.memoryItem},
		{"commit1", func(ctx context.Context) error { return b.commit(ctx, "commit1", 1) }},
		{"commit10", func(ctx context.Context) error { return b.commit(ctx, "commit10", 10) }},
		{"commit1-cpu", b.commitCPU},
		{"packed-commit1-cpu", b.packedCommitCPU},
		{"packed-commit1", func(ctx context.Context) error { return b.packedCommit(ctx, "packed-commit1", 1) }},
		{"packed-commit10", func(ctx context.Context) error { return b.packedCommit(ctx, "packed-commit10", 10) }},
		{"packed-vs-classic", b.packedVersusClassic},
		{"cached", b.cached},
		{"across2", b.across2},
		{"load1500", b.load},
		{"packed-load1500", b.packedLoad},
		{"loadsnap", b.loadSnap},
		{"tail", b.tail},
		{"packed-tail", b.packedTail},
		{"packed-tail-large", b.packedTailLarge},
		{"tail-one", b.tailOne},
		{"tail-slow", b.tailSlow},
		{"overload", b.overload},
		{"exactly-once", b.exactlyOnce},
		{"exactly-once-row", b.exactlyOnceRow},
		{"rebuild", b.rebuild},
		{"forward", b.forward},
		{"versus-sql", b.versusSQL},
		{"latency", b.latency},
		{"latency-across", b.latencyAcross},
		{"wakeup", b.wakeup},
		{"late-visible", b.lateVisible},
		{"restart", b.restart},
		{"positions", b.positions},
		{"idle", b.idle},
	} {
		if only != "" && !slices.Contains(strings.Split(only, ","), one.name) {
			continue
		}
		if err := one.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

// alternate runs bare and ours n times in turn. Each of them is first in half of the pairs. It
// prints the medians. Both functions return their time; ratio computes the result of a pair.
func alternate(name string, n int, ratio func(bare, ours time.Duration) float64, bare, ours func(pair int) (time.Duration, error)) error {
	var ratios []float64
	var bares, ourss []time.Duration
	for i := range n {
		var took [2]time.Duration
		var err error
		for turn := range 2 {
			side := (turn + i) % 2
			if took[side], err = []func(int) (time.Duration, error){bare, ours}[side](i); err != nil {
				return err
			}
		}
		bares, ourss = append(bares, took[0]), append(ourss, took[1])
		ratios = append(ratios, ratio(took[0], took[1]))
	}
	fmt.Printf("# %s: median of %d pairs; bare %v, ours %v\n", name, n, median(bares).Round(time.Microsecond), median(ourss).Round(time.Microsecond))
	fmt.Printf("ratio %s %.2f\n", name, median(ratios))
	return nil
}

// cost returns the ratio of the times.
func cost(bare, ours time.Duration) float64 { return float64(ours) / float64(bare) }

// speed returns the ratio of the throughputs.
func speed(bare, ours time.Duration) float64 { return float64(bare) / float64(ours) }

func median[N interface{ ~int64 | ~float64 }](values []N) N { return percentile(values, 50) }

func timed(work func() error) (time.Duration, error) {
	start := time.Now()
	err := work()
	return time.Since(start), err
}
