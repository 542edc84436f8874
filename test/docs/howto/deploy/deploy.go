// Package deploy has an instance of a service, of which several run at the same time.
package deploy

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/subscriber"
)

// Run runs an instance until ctx ends, as that of signal.NotifyContext does at SIGTERM.
func Run(ctx context.Context, client *dynamodb.Client, listener net.Listener, name string, handle message.NoPublishHandlerFunc) error {
	app, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: "shop-", ExistingTables: true, // a job of the deployment has made them
		HandlerTimeout: 15 * time.Second, // the longest handler
		StopTimeout:    25 * time.Second, // less than the platform waits
		Subscriber:     func(_ string, c *subscriber.Config) { c.MemberName = name },
	})
	if err != nil {
		return err
	}
	if err := app.Handle(millrace.Group{Name: "labels", Topics: []string{"order"}}, handle); err != nil {
		return err
	}
	if err := app.Serve(listener, &http.Server{Handler: operators(app), ReadHeaderTimeout: 10 * time.Second}); err != nil {
		return err
	}
	return app.Run(ctx)
}

// operators returns the routes of a server that customers do not reach.
func operators(app *millrace.App) http.Handler {
	mux := http.NewServeMux()
	// /readyz replies 503 before the start, and while DynamoDB cannot be reached.
	mux.Handle("GET /readyz", app.ReadyHandler())
	// /livez replies 200 as long as the process serves requests.
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	return mux
}
