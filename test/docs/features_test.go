package docs

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/journal/tail"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/tracing"
)

func TestThePageOfFeaturesShowsCodeThatCompiles(t *testing.T) {
	t.Parallel()
	source := strings.NewReplacer("_, _ = ", "", "_ = ", "").Replace(read(t, "../test/docs/features_test.go"))
	quoted := 0
	for _, block := range strings.Split(read(t, "reference/packages.md"), "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				quoted++
				assert.Contains(t, source, "\t"+line+"\n", "no code of this test is %q", line)
			}
		}
	}
	require.Positive(t, quoted)
}

type (
	account    struct{ Balance int }
	withdrawal struct{}
)

// The code of packages.md. Nothing runs it.
func _(
	ctx context.Context, j *journal.Journal, definition aggregate.Definition[account],
	client journal.Client, decide func(*withdrawal) (string, aggregate.Decision[account]), reactions []projection.Reaction, listener net.Listener, mux *http.ServeMux,
	withdraw aggregate.Decision[account], msg *message.Message, claimAddress func(repository.Commit) ([]types.TransactWriteItem, error), lastMonth time.Time, version uint64,
	gzip, secret journal.Encoding, file io.Writer, eventTypes []string, router *message.Router,
	w http.ResponseWriter, r *http.Request, roomID string, queryRoom func(context.Context) (live.Event, error), manager *process.Manager[account], queries http.Handler,
	previous, after aggregate.ID, show func([]*journal.Record) error, now time.Time, signedIn func(http.Handler) http.Handler,
) {
	config := journal.Config{Layout: journal.Packed, Shards: 4} // they stay as they are
	app, err := millrace.Open(ctx, client, millrace.Config{Prefix: "shop-", Journal: config})
	_ = err
	accounts, err := millrace.Repository(app, definition, repository.Config{})
	_ = err
	_ = app.HandleCommands(command.Handler("withdraw", accounts, decide))
	_, _ = app.Project(millrace.Group{Name: "totals", Topics: []string{"account"}}, reactions...)
	feed, err := app.Live(live.Config{Group: "totals"}) // pushes changes to browsers
	_ = err
	// It shows the writes of the client.
	mux.Handle("GET /totals", app.Consistent("totals", consistency.Config{})(queries))
	_ = app.Serve(listener, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second})
	_ = app.Run(ctx) // until ctx ends
	_, _ = accounts.Execute(ctx, "42", withdraw, repository.CommandID(msg.UUID))
	_, _ = accounts.Execute(ctx, "42", withdraw, repository.Writes(claimAddress))
	_, _ = accounts.Execute(ctx, "42", withdraw, repository.ExpectVersion(version))
	_, _ = accounts.LoadAsOf(ctx, "42", lastMonth)
	for after, err := range accounts.States(ctx, "42", repository.StatesQuery{From: 51, To: 100}) {
		fmt.Println(after.Record, after.State, err)
	}
	_ = repository.Config{Cache: 10_000}
	definition = definition.WithUpcasters(aggregate.Rename("account.deposited.v0", "account.deposited.v1"))
	_ = projection.Config{Definitions: []aggregate.AnyDefinition{definition}}
	_ = subscriber.Config{Definitions: []aggregate.AnyDefinition{definition}}
	_ = journal.Config{Encodings: []journal.Encoding{gzip, secret}}
	_ = journal.Config{Shards: 16, RequiredEncodings: []string{secret.Name()}}
	_, _ = archive.Export(ctx, j, file, archive.ExportOptions{})
	operators, err := console.Handler(console.Config{App: app})
	_ = err
	mux.Handle("/console/", signedIn(operators))
	counting, units := journal.CountUnits(ctx)
	balance, err := accounts.Load(counting, "42")
	log.Println(balance, err, units.Read(), units.Requests())
	_ = tail.Run(ctx, tail.Config{Journal: j, Topic: "account", Since: lastMonth, Follow: true}, show)
	for r, err := range j.Newest(ctx, "account", 20) {
		fmt.Println(r, err)
	}
	for head, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: "account", After: previous, Limit: 50}) {
		fmt.Println(head.Aggregate, head.Version, err)
	}
	_ = subscriber.Config{Start: subscriber.Now(), EventTypes: eventTypes}
	_ = subscriber.Config{Broadcast: true, Start: subscriber.Now()}
	err = feed.Serve(w, r, roomID, queryRoom)
	_ = err
	_ = subscriber.Config{Failures: subscriber.Park(20)}
	_ = subscriber.Config{Failures: subscriber.Skip(20)}
	_ = subscriber.Config{Failures: subscriber.Defer(subscriber.Backoff{Pause: time.Second, MaxPause: 10 * time.Minute})}
	for parked, err := range groups.New(j).Parked(ctx, "totals", "account", after) {
		fmt.Println(parked.Aggregate, parked.Parked, err)
	}
	_, _ = groups.New(j).Trim(ctx, "mails", groups.TrimOptions{Keep: 72 * time.Hour})
	_ = groups.New(j).Reset(ctx, "totals", "account", subscriber.Beginning(), nil)
	router.AddMiddleware(tracing.Middleware(tracing.Config{}))
	saga, err := manager.WaitOver(ctx, "o1")
	_, _ = saga, err
	for p, err := range process.NewBacklog(client, process.DefaultTable).Open(ctx, process.Query{Type: "order-saga"}) {
		fmt.Println(p.Process, p.Begun, err)
	}
	for p, err := range process.NewBacklog(client, process.DefaultTable).Due(ctx, "order-saga", now.Add(time.Hour)) {
		fmt.Println(p.Process, p.Timeout, p.At, p.Failure, err)
	}
}
