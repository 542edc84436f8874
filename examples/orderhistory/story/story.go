// Package story runs the whole example once, under conditions that it must handle. Consumers, the
// kitchen and the courier act over the REST API, some of them on the same order at once, and send
// some commands twice. DynamoDB throttles some requests. The consumer of the events is restarted,
// and crashes, while it works. The policies handle some messages again, out of order. The first
// events of all orders are replayed into the history late.
//
// Then the story compares the API with a replay of the journal, and checks whether the three
// services agree on each order.
package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
)

// ErrWrong reports that the history differs from the replayed journal. The report lists the
// differences.
var ErrWrong = errors.New("the order history is wrong")

// patience limits each wait of a story that fails.
const patience = time.Minute

// minOrders is enough for the restarts to happen in the middle of the story.
const minOrders = 20

// Config configures a story.
type Config struct {
	// Seed decides who orders what, and what happens to each order.
	Seed      uint64
	Orders    int // at least 20
	Consumers int // number of consumers, who place the orders
	Writers   int // number of concurrent writers
	// Layout is the layout of the tables of events. Default: journal.Packed.
	Layout journal.Layout
	Out    io.Writer // for the report
	Log    io.Writer // for errors during the story
}

// Run runs the story on its own tables, which it deletes at the end, and prints the report. Errors:
// [ErrWrong].
func Run(ctx context.Context, client *dynamodb.Client, config Config) (report *Report, err error) {
	if config.Orders < minOrders {
		return nil, fmt.Errorf("a story of %d orders is too short, take %d or more", config.Orders, minOrders)
	}
	fmt.Fprintf(config.Out, "Order history with seed %d\n", config.Seed)
	fmt.Fprintln(config.Log, "Faults are injected on purpose: requests are throttled, connections break, a consumer crashes. "+
		"Some errors in the log are caused by them.")
	began := time.Now()
	names := millrace.Config{Prefix: "ftgo-story-" + uuid.NewString()[:8] + "-", Journal: journal.Config{Layout: config.Layout}}
	s, err := service.Open(ctx, client, names)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, s.DropTables(ctx))
	}()

	faults := newThrottler(config.Seed)
	history := &consumers{client: client, config: names, log: config.Log, throttler: faults}
	report, err = tell(ctx, s, history, config)
	faults.on.Store(false)
	err = errors.Join(err, history.close())
	if report == nil {
		return nil, err
	}
	report.Took = time.Since(began)
	report.print(config.Out)
	if err == nil && len(report.Differences) > 0 {
		err = ErrWrong
	}
	return report, err
}

func tell(ctx context.Context, s *service.Service, history *consumers, config Config) (report *Report, err error) {
	plans := plan(config.Seed, config.Orders, config.Consumers)
	api, stop, err := history.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	defer showProgress(config.Log, api, history)()
	left, err := act(ctx, api, history, config, plans)
	if err != nil {
		return nil, err
	}
	acted := time.Now()
	truth, err := awaitHistory(ctx, s)
	if err != nil {
		return nil, err
	}
	report = &Report{
		Orders: len(plans), Contended: (len(plans) + contendedEvery - 1) / contendedEvery,
		Accepted: api.accepted.Load(), Refused: api.refused.Load(), SentAgain: api.again.Load(),
		Committed: truth.events, CaughtUp: time.Since(acted),
		Repeated: history.echo.repeated.Load(), Late: left,
	}
	report.LagMedian, report.LagMax = history.lag.summary()
	v := &verifier{api: api, truth: truth}
	if err := v.verify(ctx, config.Consumers); err != nil {
		return nil, err
	}
	report.Throttled = history.throttler.throttled.Load()
	report.count(history.totals())
	report.Pages, report.Questions = v.pages, v.asked
	report.Differences = append(report.Differences, v.differences...)
	return report, nil
}

// showProgress prints a line from time to time, until stop is called.
func showProgress(log io.Writer, api *apiClient, history *consumers) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	go func() {
		each := time.NewTicker(5 * time.Second)
		defer each.Stop()
		for {
			select {
			case <-done:
				return
			case <-each.C:
				fmt.Fprintf(log, "%v: %d commands accepted, %d requests throttled on purpose\n",
					time.Since(began).Round(time.Second), api.accepted.Load(), history.throttler.throttled.Load())
			}
		}
	}()
	return func() { close(done) }
}

// act makes the actors execute the plans while the history follows, with a restart, a crash and a
// late replay.
func act(
	ctx context.Context, api *apiClient, history *consumers, config Config, plans []planned,
) (left uint64, err error) {
	if err := history.start(ctx); err != nil {
		return 0, err
	}
	history.throttler.on.Store(true)
	progress := make(chan struct{}, len(plans))
	work, stop := context.WithCancel(ctx)
	defer stop()
	interrupted, late := make(chan error, 1), make(chan error, 1)
	go func() { interrupted <- history.interrupt(work, ctx, progress, len(plans)) }()

	a := &actors{api: api, progress: progress}
	half := len(plans) / 2
	err = a.run(work, config.Writers, plans[:half])
	go func() {
		var err error
		left, err = replayLate(ctx, history)
		late <- err
	}()
	if err == nil {
		err = a.run(work, config.Writers, plans[half:])
	}
	if err != nil {
		stop()
	}
	err = errors.Join(err, <-interrupted, <-late)
	return left, err
}

// awaitHistory waits until the policies have executed all commands and the history shows all
// events. It returns the truth at that time.
func awaitHistory(ctx context.Context, s *service.Service) (truth, error) {
	// The order matters: an event of a ticket leads to an event of an order. The policies of orders
	// only lead to events without policies.
	err := caughtUp(ctx, s, service.PoliciesGroup, ticket.Definition.Type(), order.Definition.Type())
	if err == nil {
		err = caughtUp(ctx, s, service.HistoryGroup, service.Topics()...)
	}
	if err != nil {
		return truth{}, err
	}
	t, err := loadTruth(ctx, s.Journal())
	if err != nil {
		return t, err
	}
	for _, o := range t.orders {
		if err := inIndex(ctx, s.History, o); err != nil {
			return t, err
		}
	}
	return t, nil
}

// inIndex waits until the index of the history shows an order in the given version. In DynamoDB the
// index follows the table.
func inIndex(ctx context.Context, dao *history.OrderHistoryDao, want history.Order) error {
	err := wait(ctx, func(ctx context.Context) (bool, error) {
		page, err := dao.FindOrderHistory(ctx, want.ConsumerID, history.Filter{
			Since: want.CreationTime, Until: want.CreationTime.Add(time.Millisecond), PageSize: history.MaxPageSize,
		})
		for _, got := range page.Orders {
			if got.OrderID == want.OrderID && got.Versions == want.Versions {
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("order %s in the index at %+v: %w", want.OrderID, want.Versions, err)
	}
	return nil
}
