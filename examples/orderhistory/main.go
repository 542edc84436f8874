// Command orderhistory runs three services and a CQRS view. Orders, the kitchen's tickets and the
// courier's deliveries are event sourced aggregates that execute commands. A view in DynamoDB
// follows the events of all three and answers queries.
//
//	go run ./examples/orderhistory [serve]    serve the page and the REST API, with sample orders
//	go run ./examples/orderhistory story      run all of it once with faults, and check all orders
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/orderhistory/story"
	"github.com/millrace-dev/millrace/journal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "orderhistory:", err)
		os.Exit(1)
	}
}

const commandUsage = `usage: orderhistory [command] [flags]

  serve   serve the page and the REST API (the default)
  story   place orders while faults are injected, and verify the history

%s

Flags of %s:
`

func run(ctx context.Context, args []string, out, log io.Writer) error {
	command := "serve"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("orderhistory "+command, flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() {
		fmt.Fprintf(log, commandUsage, dynamo.EndpointUsage, command)
		flags.PrintDefaults()
	}
	switch command {
	case "serve":
		var o options
		flags.StringVar(&o.address, "listen", "127.0.0.1:8080", "address of the page and the REST API")
		flags.StringVar(&o.host, "host", "", "host name of a proxy in front, if -listen is a loopback address")
		flags.BoolVar(&o.sample, "sample", true, "add sample orders if there are none yet")
		flags.StringVar(&o.nats, "nats", "", "loopback address of a NATS server in this process, to which orders are published, such as 127.0.0.1:4222 (default none)")
		flags.StringVar(&o.layout, dynamo.LayoutFlag, string(journal.Packed), dynamo.LayoutUsage)
		database := flags.String(dynamo.Flag, "", dynamo.FlagUsage)
		if err := parse(flags, args); err != nil {
			return err
		}
		db, err := dynamo.Open(ctx, *database)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "On", dynamo.Where())
		return errors.Join(serve(ctx, db, o, out, log), db.Close())
	case "story":
		config := story.Config{Consumers: 8, Writers: 8, Out: out, Log: log}
		flags.Uint64Var(&config.Seed, "seed", rand.Uint64N(1_000_000), "seed of the random choices")
		flags.StringVar((*string)(&config.Layout), dynamo.LayoutFlag, string(journal.Packed), dynamo.LayoutUsage)
		flags.IntVar(&config.Orders, "orders", 300, "number of orders")
		if err := parse(flags, args); err != nil {
			return err
		}
		client, err := dynamo.Client(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "On", dynamo.Where())
		_, err = story.Run(ctx, client, config)
		return err
	default:
		return fmt.Errorf("there is no command %q, only serve and story", command)
	}
}

func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%s takes no argument %q", flags.Name(), flags.Arg(0))
	}
	return err
}
