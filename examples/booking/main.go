// Command booking is a booking service for shows: customers hold seats, pay, and get a mail.
//
//	go run ./examples/booking                # serve on dynamotest, a DynamoDB in the process
//	go run ./examples/booking -aws           # serve on AWS, with your AWS configuration
//
// With -database 127.0.0.1:8000, the command millrace can access the database of this process.
//
// The program prints requests to try. The bank and the mail service are simulated, and some of
// their calls fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func main() {
	onAWS := flag.Bool("aws", false, "use DynamoDB on AWS instead of a database in this process")
	address := flag.String("http", "127.0.0.1:8080", "the address to serve on")
	database := flag.String(dynamo.Flag, "", dynamo.FlagUsage)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *onAWS, *address, *database, os.Stdout)
	stop()
	if err != nil {
		log.Fatalln("booking:", err)
	}
}

func run(ctx context.Context, onAWS bool, address, database string, out io.Writer) error {
	db, err := connect(ctx, onAWS, database)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, db, address, out), db.Close())
}

func connect(ctx context.Context, onAWS bool, database string) (*dynamo.Database, error) {
	switch {
	case !onAWS:
		return dynamo.Open(ctx, database)
	case database != "":
		return nil, errors.New("-database serves the database of this process, and -aws uses another one: omit one of them")
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return &dynamo.Database{Client: dynamodb.NewFromConfig(c), Endpoint: dynamo.AWS}, nil
}

func serve(ctx context.Context, db *dynamo.Database, address string, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	sometimes := func(context.Context) error {
		if rand.IntN(3) == 0 {
			return errors.New("the service is busy")
		}
		return nil
	}
	a, err := open(ctx, db.Client, listener, service.Settings{
		Layout: journal.Packed,
		Bank:   &simulated.Bank{Limit: 20_000, Faults: simulated.Faults{Before: sometimes}},
		Post: &simulated.Post{Faults: simulated.Faults{After: sometimes}, Sent: func(m simulated.Mail) {
			fmt.Fprintf(out, "mail to %s: %s\n", m.To, m.Text)
		}},
		PaymentPatience: time.Minute,
		Backoff:         subscriber.Backoff{Pause: time.Second, MaxPause: 10 * time.Minute},
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	url := "http://" + listener.Addr().String()
	fmt.Fprintf(out, `Serving on %[1]s. Try:

curl -X PUT %[1]s/shows/hamlet -d '{"price": 4200, "seats": ["A1", "A2", "A3"]}'
curl -X POST %[1]s/shows/hamlet/bookings -d '{"customer": "ada", "seats": ["A1", "A2"]}'
curl %[1]s/shows/hamlet/seats
curl %[1]s/customers/ada/bookings

%[2]s
`, url, db.InspectionOf(service.Prefix))
	return a.Run(ctx)
}

// open opens the service, which serves its routes while it runs.
func open(ctx context.Context, client *dynamodb.Client, listener net.Listener, c service.Settings) (*service.App, error) {
	a, err := service.Open(ctx, client, c)
	if err != nil {
		return nil, err
	}
	return a, a.Serve(listener, &http.Server{Handler: a.Routes(), ReadHeaderTimeout: 10 * time.Second})
}
