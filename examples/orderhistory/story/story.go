// Package story runs the whole example once, under conditions that it should stand: concurrent writers
// that get in each other's way, and a consumer that is restarted and that crashes in the middle of it. Then
// it compares what the REST API shows with what the orders say of themselves.
package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
)

// ErrWrong says that the history differs from the truth. The report says where.
var ErrWrong = errors.New("the order history is wrong")

// patience bounds each wait of a story that goes wrong.
const patience = time.Minute

// minOrders is enough for the restarts to come in the middle of the story.
const minOrders = 20

// Config configures a story.
type Config struct {
	Seed      uint64    // decides who orders what, and what happens to it
	Orders    int       // at least 20
	Consumers int       // who place them
	Writers   int       // at a time
	Out       io.Writer // for the report
	Log       io.Writer // for errors on the way
}

// Run tells the story on tables of its own, which it deletes in the end, and prints the report. Errors:
// [ErrWrong].
func Run(ctx context.Context, client *dynamodb.Client, config Config) (report *Report, err error) {
	if config.Orders < minOrders {
		return nil, fmt.Errorf("a story of %d orders is too short, take %d or more", config.Orders, minOrders)
	}
	fmt.Fprintf(config.Out, "Order history with seed %d\n", config.Seed)
	began := time.Now()
	names := service.Config{Prefix: "ftgo-story-" + uuid.NewString()[:8] + "-"}
	s, err := service.Open(ctx, client, names)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, s.DropTables(ctx))
	}()

	history := &consumers{client: client, config: names, log: config.Log}
	report, err = tell(ctx, s, history, config)
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

func tell(ctx context.Context, s *service.Service, history *consumers, config Config) (*Report, error) {
	plans := plan(config.Seed, config.Orders, config.Consumers)
	w, err := write(ctx, s, history, config, plans)
	if err != nil {
		return nil, err
	}
	written := time.Now()
	truth, err := loadTruth(ctx, s.Orders, config.Writers, plans)
	if err != nil {
		return nil, err
	}
	if err := catchUp(ctx, s.History, truth); err != nil {
		return nil, err
	}
	report := &Report{
		Orders: len(plans), Contended: (len(plans) + contendedEvery - 1) / contendedEvery,
		Accepted: w.accepted.Load(), Refused: w.refused.Load(), Conflicts: w.conflicts.Load(),
		Committed: truth.events(), CaughtUp: time.Since(written),
	}
	report.LagMedian, report.LagMax = history.lag.summary()
	v := &verifier{truth: truth}
	if err := v.overHTTP(ctx, s, config.Consumers); err != nil {
		return nil, err
	}
	report.count(history.totals())
	report.Pages, report.Questions = v.pages, v.asked
	report.Differences = append(report.Differences, v.differences...)
	return report, nil
}

// write lets the writers carry out the plans while the history follows, through a restart and a crash.
func write(ctx context.Context, s *service.Service, history *consumers, config Config, plans []planned) (*writers, error) {
	if err := history.start(ctx); err != nil {
		return nil, err
	}
	commands := 0
	for _, p := range plans {
		commands += p.commands()
	}
	progress := make(chan struct{}, commands)
	work, stop := context.WithCancel(ctx)
	defer stop()
	interrupted := make(chan error, 1)
	go func() { interrupted <- history.interrupt(work, ctx, progress, commands) }()

	w := &writers{orders: s.Orders, progress: progress}
	err := w.run(work, config.Writers, plans)
	if err != nil {
		stop()
	}
	return w, errors.Join(err, <-interrupted)
}

// overHTTP serves the REST API on this machine, and verifies what it shows.
func (v *verifier) overHTTP(ctx context.Context, s *service.Service, consumers int) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api.New(api.Config{Orders: s.Orders, History: s.History}), ReadHeaderTimeout: patience}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client := &http.Client{Transport: &http.Transport{}}
	v.api = &apiClient{http: client, base: "http://" + listener.Addr().String()}
	err = v.verify(ctx, consumers)
	client.CloseIdleConnections()
	err = errors.Join(err, server.Shutdown(ctx))
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
