// Command booking is a booking service for shows: customers hold seats, pay, and get a mail.
//
//	go run ./examples/booking                # serve on dynamotest, a DynamoDB in the process
//	go run ./examples/booking -aws           # serve on AWS, with your AWS configuration
//
// It prints requests to try. The bank and the mail service are simulated, and fail now and then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func main() {
	onAWS := flag.Bool("aws", false, "use DynamoDB on AWS instead of a database in this process")
	address := flag.String("http", "127.0.0.1:8080", "the address to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *onAWS, *address)
	stop()
	if err != nil {
		log.Fatalln("booking:", err)
	}
}

func run(ctx context.Context, onAWS bool, address string) error {
	client := dynamotest.Open().Client()
	if onAWS {
		c, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return err
		}
		client = dynamodb.NewFromConfig(c)
	}
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
	a, err := open(ctx, client, listener, settings{
		layout: journal.Packed,
		bank:   &simulated.Bank{Limit: 20_000, Faults: simulated.Faults{Before: sometimes}},
		post: &simulated.Post{Faults: simulated.Faults{After: sometimes}, Sent: func(m simulated.Mail) {
			fmt.Printf("mail to %s: %s\n", m.To, m.Text)
		}},
		paymentPatience: time.Minute,
		backoff:         subscriber.Backoff{Pause: time.Second, MaxPause: 10 * time.Minute},
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	url := "http://" + listener.Addr().String()
	fmt.Printf(`Serving on %[1]s. Try:

curl -X PUT %[1]s/shows/hamlet -d '{"price": 4200, "seats": ["A1", "A2", "A3"]}'
curl -X POST %[1]s/shows/hamlet/bookings -d '{"customer": "ada", "seats": ["A1", "A2"]}'
curl %[1]s/shows/hamlet/seats
curl %[1]s/customers/ada/bookings

`, url)
	return a.Run(ctx)
}
