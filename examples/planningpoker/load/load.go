// Package load measures the performance of planning poker for its users. Users in many rooms play
// rounds over HTTP on two servers that share their tables, and one person in each room watches the
// page. In half of the rooms that person uses another server than the players.
package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/journal"
)

// patience limits the wait for the last commands on the pages, and for the removal of the tables.
const patience = 2 * time.Minute

// Config configures the load. All fields except Logger are required.
type Config struct {
	Rooms, Users int // Users is the number of users in each room
	// Of the measurement, after rooms were opened and users have joined.
	Duration time.Duration
	// Average time of a user from a new round to a pick. 0 means no pause.
	Think time.Duration
	// Of the tables of events. Default: journal.Packed.
	Layout journal.Layout
	Logger *slog.Logger // for the servers; default: slog.Default()
}

// Report holds the results of the measurement.
type Report struct {
	Rooms, Users int
	Took         time.Duration
	Commands     int // executed commands
	Failed       int // failed commands, or not shown on a page
	// Latencies are the times from the reply to a command to the page that shows it or a later
	// version, sorted. 0 means that the page was faster than the reply.
	Latencies []time.Duration
}

// Run measures on its own tables, which it deletes at the end.
func Run(ctx context.Context, client *dynamodb.Client, config Config) (report *Report, err error) {
	shared := service.Config{Prefix: "load-" + uuid.NewString()[:8] + "-", Layout: config.Layout, Logger: config.Logger}
	var servers [2]*service.Server
	defer func() { // after the servers are closed
		if servers[0] != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			err = errors.Join(err, servers[0].DropTables(ctx, client))
		}
	}()
	for i := range servers {
		if servers[i], err = service.Start(ctx, client, shared); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, servers[i].Close()) }()
	}
	transport := &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: config.Rooms * (config.Users + 1)}
	defer transport.CloseIdleConnections()

	games := make([]*game, config.Rooms)
	for i := range games {
		players, watcher := servers[i%2], servers[(i+i/2)%2]
		games[i] = newGame(players.URL, watcher.URL, transport, config)
		defer games[i].stop()
	}
	if err := each(games, func(g *game) error { return g.open(ctx, config.Users) }); err != nil {
		return nil, fmt.Errorf("open the rooms: %w", err)
	}
	began := time.Now()
	playing, stop := context.WithTimeout(ctx, config.Duration)
	defer stop()
	if err := each(games, func(g *game) error { return g.play(playing, ctx) }); err != nil {
		return nil, err
	}
	report = &Report{Rooms: config.Rooms, Users: config.Users, Took: time.Since(began)}
	for _, g := range games {
		g.finish(ctx)
		report.Commands += g.commands
		report.Failed += g.failed + g.pending()
		report.Latencies = append(report.Latencies, g.latencies...)
	}
	slices.Sort(report.Latencies)
	return report, ctx.Err()
}

// each calls a function for all games at once.
func each(games []*game, do func(*game) error) error {
	failures := make([]error, len(games))
	var doing sync.WaitGroup
	for i, g := range games {
		doing.Add(1)
		go func() {
			defer doing.Done()
			failures[i] = do(g)
		}()
	}
	doing.Wait()
	return errors.Join(failures...)
}

// Quantile returns the latency that the given fraction of the commands does not exceed.
func (r *Report) Quantile(part float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(part*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

// String returns the report in one line.
func (r *Report) String() string {
	return fmt.Sprintf("planningpoker %d rooms of %d users: %.0f commands a second, commit to page %d ms in the median, %d ms at 99%%, %d failed",
		r.Rooms, r.Users, float64(r.Commands)/r.Took.Seconds(),
		r.Quantile(0.5).Milliseconds(), r.Quantile(0.99).Milliseconds(), r.Failed)
}
