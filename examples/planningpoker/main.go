// Command planningpoker serves planning poker. Commands go to event sourced rooms, a view in
// DynamoDB follows their events, and browsers show its changes.
//
//	go run ./examples/planningpoker [serve]    serve the page and the REST API
//	go run ./examples/planningpoker load       measure throughput and latency
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/planningpoker/load"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/journal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "planningpoker:", err)
		os.Exit(1)
	}
}

const commandUsage = `usage: planningpoker [command] [flags]

  serve   serve the page and the REST API (the default)
  load    measure commands per second, and the time from a commit to the page

%s

Flags of %s:
`

func run(ctx context.Context, args []string, out, log io.Writer) error {
	command := "serve"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("planningpoker "+command, flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() {
		fmt.Fprintf(log, commandUsage, dynamo.EndpointUsage, command)
		flags.PrintDefaults()
	}
	switch command {
	case "serve":
		var config service.Config
		flags.StringVar(&config.Address, "listen", "127.0.0.1:8080", "address of the page and the REST API")
		flags.BoolVar(&config.SecureCookie, "secure-cookie", false, "set the cookie for HTTPS only, behind a proxy that terminates TLS")
		flags.StringVar(&config.Host, "host", "", "host name of a proxy in front, if -listen is a loopback address")
		flags.StringVar((*string)(&config.Layout), dynamo.LayoutFlag, string(journal.Packed), dynamo.LayoutUsage)
		database := flags.String(dynamo.Flag, "", dynamo.FlagUsage)
		if err := parse(flags, args); err != nil {
			return err
		}
		db, err := dynamo.Open(ctx, *database)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "On", dynamo.Where())
		err = errors.Join(serve(ctx, db, config, out, log), db.Close())
		if listen := new(net.OpError); errors.As(err, &listen) && listen.Op == "listen" {
			err = fmt.Errorf("%w: choose another address with -listen", err)
		}
		return err
	case "load":
		config := load.Config{Logger: quiet(log)}
		flags.StringVar((*string)(&config.Layout), dynamo.LayoutFlag, string(journal.Packed), dynamo.LayoutUsage)
		flags.IntVar(&config.Rooms, "rooms", 50, "how many rooms")
		flags.IntVar(&config.Users, "users", 10, "how many users in each, at most 30")
		seconds := flags.Int("seconds", 10, "how long they play")
		flags.DurationVar(&config.Think, "think", time.Second, "average time of a user to pick; 0 for no pause")
		if err := parse(flags, args); err != nil {
			return err
		}
		if config.Users < 1 || config.Users > 30 {
			return fmt.Errorf("-users is %d: a room takes 1 to 30", config.Users)
		}
		config.Duration = time.Duration(*seconds) * time.Second
		client, err := dynamo.Client(ctx)
		if err != nil {
			return err
		}
		report, err := load.Run(ctx, client, config)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, report)
		if report.Failed > 0 {
			return fmt.Errorf("%d commands failed, or were shown on no page", report.Failed)
		}
		return nil
	default:
		return fmt.Errorf("there is no command %q, only serve and load", command)
	}
}

// quiet returns a logger of errors.
func quiet(log io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%s takes no argument %q", flags.Name(), flags.Arg(0))
	}
	return err
}
