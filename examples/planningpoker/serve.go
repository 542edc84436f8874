package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/oklog/ulid/v2"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
)

// serve runs a server until the context ends.
func serve(ctx context.Context, db *dynamo.Database, config service.Config, out, log io.Writer) error {
	config.Logger = quiet(log)
	server, err := service.Start(ctx, db.Client, config)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `Serving planning poker on %[1]s until interrupted. Open it in two browsers, or try

  curl -i -c me %[1]s/
  curl -b me '%[1]s/rooms?wait=true' --json '{"roomId": "%[2]s", "name": "Sprint 12"}'
  curl -b me '%[1]s/rooms/%[2]s/join?wait=true' --json '{"name": "Ada"}'
  curl -b me '%[1]s/rooms/%[2]s/pick?wait=true' --json '{"card": "5"}'
  curl -b me %[1]s/rooms/%[2]s
  curl -b me -N %[1]s/rooms/%[2]s/events

%[1]s/console/ shows the events, without cards, and the consumer group.

%[3]s`, server.URL(), ulid.MustNew(ulid.Now(), rand.Reader), db.Inspection(server.Journal().Config().Tables))
	return server.Wait()
}
