// Command console serves the console of an application with many faults: consumer groups that are
// blocked, stopped or without members, a rebuild that does not end, and overdue timeouts. With
// -hostile, texts in the data try to attack the page. With -quiet, nothing writes new events.
//
//	go run ./examples/console
//
// The database is in this process, so each start begins with new data. All actions are allowed.
// With -database 127.0.0.1:8000 the command millrace reaches it, with the prefix "shop-".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("console", flag.ContinueOnError)
	flags.SetOutput(log)
	address := flags.String("listen", "127.0.0.1:8080", "loopback address of the page")
	layout := flags.String(dynamo.LayoutFlag, string(journal.Packed), dynamo.LayoutUsage)
	database := flags.String(dynamo.Flag, "", dynamo.FlagUsage)
	quiet := flags.Bool("quiet", false, "write no new events")
	hostile := flags.Bool("hostile", false, "add names, payloads and reasons that try to attack the page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("there is no argument %q", flags.Arg(0))
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -listen", err)
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("%s is not a loopback address, and the page allows all actions to every visitor", *address), listener.Close())
	}
	db, err := openDatabase(ctx, *database)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c := settings{layout: journal.Layout(*layout), hostile: *hostile, quiet: *quiet, logger: watermill.NewStdLoggerWithOut(log, false, false)}
	return errors.Join(serve(ctx, db, listener, c, out), db.Close())
}

// openDatabase opens the database of this process, and serves it at an address, if there is one.
func openDatabase(ctx context.Context, address string) (*dynamo.Database, error) {
	if address == "" {
		return &dynamo.Database{Client: dynamotest.Open().Client()}, nil
	}
	return dynamo.Open(ctx, address)
}

func serve(ctx context.Context, db *dynamo.Database, listener net.Listener, c settings, out io.Writer) error {
	s, err := open(ctx, db.Client, listener, c)
	if err == nil && !c.quiet {
		err = s.Add(millrace.Service{Name: "writer", Run: s.write})
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stop, err := s.run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Serving the console on http://%s\n", listener.Addr())
	if db.Endpoint != "" {
		fmt.Fprint(out, db.InspectionOf(prefix))
	}
	<-s.Stopped()
	return stop()
}
