// Command lambda is the booking service of examples/booking in AWS Lambda.
//
//	go run ./examples/lambda                            # some bookings on this machine
//	go run ./examples/lambda -bookings 10000 -kills     # a long test
//
// One program has two functions, which are chosen by the handler that is configured in Lambda:
//
//   - api has a function URL with the invoke mode RESPONSE_STREAM. It executes commands and queries
//     over HTTP.
//   - consumer handles events: everything that the handlers, projections and process managers of
//     the service do. The stream of the journal table (KEYS_ONLY) invokes it with the keys of what
//     was written. A schedule invokes it for what is due, such as the time-outs of payments. See
//     package awslambda.
//
// Both read these environment variables, beside those of AWS:
//
//	SERVICES          URL of the bank and the mail service
//	PAYMENT_PATIENCE  how long a payment may take
//
// Without Lambda, the program shows both functions on this machine. It starts DynamoDB Local with a
// stream, and executes itself as Lambda would: package machine is a small Lambda. It makes bookings
// through the function URL, and prints what happens. The bank declines some of them and does not
// answer others in time. At the end it checks that each booking is right, and that each mail was
// sent once. With -kills, processes are killed in the middle of invocations.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

func main() {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		start() // does not return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lambda:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c := options{out: os.Stdout, sweep: 2 * time.Second, timeout: 10 * time.Second, patience: 4 * time.Second}
	flags := flag.NewFlagSet("lambda", flag.ContinueOnError)
	flags.IntVar(&c.bookings, "bookings", 20, "number of bookings")
	flags.BoolVar(&c.kills, "kills", false, "kill processes in the middle of invocations")
	flags.BoolVar(&c.verbose, "v", false, "print what the functions print")
	flags.Uint64Var(&c.seed, "seed", rand.Uint64N(1_000_000), "seed of the random choices")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// Tables would remain in a DynamoDB Local that runs already.
	server, err := dynamolocal.Start(ctx, dynamolocal.Options{Private: true, Notes: os.Stderr})
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Fprintf(c.out, "DynamoDB Local at %s, seed %d\n", server.Endpoint, c.seed)
	_, err = show(ctx, dynamolocal.NewClient(server.Endpoint, "millrace"), c)
	return err
}
