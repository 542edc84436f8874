package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/loopback"
	"github.com/millrace-dev/millrace/journal"
)

// Flag is an application's flag for the address of [Open], and FlagUsage describes it.
const (
	Flag      = "database"
	FlagUsage = "loopback address where the database of this process is served to other programs, such as " + suggested + " (default not at all)"
)

// LayoutFlag is an application's flag for the layout of its journal, and LayoutUsage describes it.
const (
	LayoutFlag  = "layout"
	LayoutUsage = "how events are stored, packed or classic; it never changes once the tables exist"
)

// suggested is an address for serving the database.
const suggested = "127.0.0.1:8000"

// Database is the DynamoDB of an application: a client, and an address for other programs. Without
// an address, other programs cannot access a database in the process.
type Database struct {
	Client *dynamodb.Client
	// A URL for other programs, or [AWS]. Empty for none.
	Endpoint string
	server   *http.Server
	ended    chan error // the result of the server
}

// Open returns the DynamoDB that the environment chooses. With an address, it serves a database in
// this process over HTTP. Any program on this machine can then read and write the database, and no
// other machine can: the address must be a loopback address. Errors: [ErrNotSetUp], and errors that
// name the flag.
func Open(ctx context.Context, address string) (*Database, error) {
	chosen := strings.TrimSpace(os.Getenv(EndpointEnv))
	if address == "" || chosen != "" {
		if address != "" {
			return nil, fmt.Errorf("-%s serves the database of this process, and %s names another one: omit one of them", Flag, EndpointEnv)
		}
		client, err := Client(ctx)
		return &Database{Client: client, Endpoint: chosen}, err
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	db := dynamotest.Open()
	d := &Database{
		Client:   db.Client(),
		Endpoint: "http://" + listener.Addr().String(),
		server: &http.Server{
			Handler:     loopback.Guard(listener.Addr(), db.Handler()),
			ReadTimeout: 30 * time.Second,
			IdleTimeout: 2 * time.Minute,
		},
		ended: make(chan error, 1),
	}
	go func() { d.ended <- d.server.Serve(listener) }()
	return d, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-%s: %w", Flag, err)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("-%s %s: other machines could read and change the database there, use a loopback address such as %s",
			Flag, address, suggested)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", resolved.String())
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with -%s", err, Flag)
	}
	return listener, nil
}

// Inspection says how to inspect the tables of a journal with the millrace command.
func (d *Database) Inspection(tables journal.Tables) string {
	return d.inspection("--journal-table " + tables.Journal + " --checkpoint-table " + tables.Checkpoint)
}

// InspectionOf says the same for tables with a prefix, such as those of a millrace.App.
func (d *Database) InspectionOf(prefix string) string { return d.inspection("--prefix " + prefix) }

func (d *Database) inspection(tables string) string {
	how, endpoint := "Look at its tables with", d.Endpoint
	if endpoint == "" {
		how, endpoint = fmt.Sprintf("Start it with -%s %s to look at its tables with", Flag, suggested), "http://"+suggested
	}
	return fmt.Sprintf("%s\n\n  millrace groups --endpoint %s %s\n", how, endpoint, tables)
}

// Close stops the server. Connected programs lose their connections.
func (d *Database) Close() error {
	if d.server == nil {
		return nil
	}
	err := d.server.Close()
	if ended := <-d.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
