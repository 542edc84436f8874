package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

func main() {
	rounds := flag.Int("rounds", 300, "rounds of each operation whose times are measured; 0 counts units only")
	folder := flag.String("folder", "test/peers", "the folder of peers.js and of the packages that npm fetched")
	var others programs
	flag.Var(&others, "peer", "NAME=PROGRAM: another program of the event-store-adapter family; can be repeated")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *folder, *rounds, others)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string, rounds int, others programs) (err error) {
	endpoint := dynamolocal.EndpointFromEnv()
	if rounds > 0 && endpoint == "" {
		return errors.New("no DynamoDB: run `make bench-peers`, which starts one")
	}
	contenders, stop, err := start(ctx, folder, others)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	costs, err := countUnits(ctx, contenders)
	if err != nil {
		return err
	}
	fmt.Printf("Round trips / read (r) and write units (w) for %g KB / for %g KB:\n\n%s\n", kb(sizes[0]), kb(sizes[1]), costs.table())
	for _, l := range costs.leads() {
		fmt.Printf("packed is not first: %s, %s\n", l.operation, l.requests)
	}
	if rounds == 0 {
		return nil
	}
	times, err := measureTimes(ctx, endpoint, contenders, rounds)
	if err != nil {
		return err
	}
	fmt.Printf("\nMedian times of packed, and ratios to packed, for %g KB / for %g KB:\n\n%s", kb(sizes[0]), kb(sizes[1]), times.table())
	return nil
}

// programs are the values of -peer.
type programs []struct{ name, path string }

func (p *programs) String() string { return "" }

func (p *programs) Set(value string) error {
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" || path == "" {
		return fmt.Errorf("%q is not NAME=PROGRAM", value)
	}
	*p = append(*p, struct{ name, path string }{name, path})
	return nil
}

// start starts the processes of the peers, and returns the stores in the order of the tables.
func start(ctx context.Context, folder string, others programs) ([]contender, func() error, error) {
	node, err := startProcess(ctx, folder, "node", "--no-warnings", "peers.js")
	if err != nil {
		return nil, nil, err
	}
	processes := []*process{node}
	stop := func() (err error) {
		for _, p := range processes {
			err = errors.Join(err, p.stop())
		}
		return err
	}
	contenders := []contender{packed, classic}
	for _, other := range others {
		p, err := startProcess(ctx, "", other.path)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		processes = append(processes, p)
		contenders = append(contenders, ofFamily(other.name, p, true))
	}
	return append(contenders, ofFamily("event-store-adapter-js", node, true),
		ofFamily("event-store-adapter-js without tail index", node, false), castore(node)), stop, nil
}
