package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdaurl"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/millrace-dev/millrace/awslambda"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber"
)

// The names of the functions, and of their environment variables.
const (
	api         = "api"
	consumer    = "consumer"
	servicesEnv = "SERVICES"
	patienceEnv = "PAYMENT_PATIENCE"
)

// start opens the service once, and handles invocations. It does not return.
func start() {
	logger := watermill.NewStdLogger(false, false)
	app, err := open(context.Background(), logger)
	if err != nil {
		log.Fatalln("initialise:", err)
	}
	switch handler := os.Getenv("_HANDLER"); handler {
	case api:
		lambdaurl.Start(app.Routes())
	case consumer:
		function, err := awslambda.New(awslambda.Config{Journal: app.Journal(), CatchUp: app.CatchUp}, logger)
		if err != nil {
			log.Fatalln("initialise:", err)
		}
		lambda.Start(function)
	default:
		log.Fatalf("initialise: there is no function %q, only %s and %s", handler, api, consumer)
	}
}

func open(ctx context.Context, logger watermill.LoggerAdapter) (*service.App, error) {
	// Lambda does not wait longer for an initialisation.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// Important failures are returned as errors.
	aws, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, err
	}
	patience, err := time.ParseDuration(os.Getenv(patienceEnv))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", patienceEnv, err)
	}
	others := client{url: os.Getenv(servicesEnv)}
	return service.Open(ctx, dynamodb.NewFromConfig(aws), settings(others, patience, logger))
}

func settings(others client, patience time.Duration, logger watermill.LoggerAdapter) service.Settings {
	return service.Settings{
		ExistingTables: true, Bank: others, Post: others, PaymentPatience: patience, Logger: logger,
		Backoff: subscriber.Backoff{Pause: time.Second, MaxPause: 10 * time.Second, Attempts: 1000},
		Process: process.Config{RetryAfter: 10 * time.Second},
	}
}
