// Package load measures planning poker as its users would feel it: rooms full of people who play
// rounds over HTTP on two servers that share their tables, and someone in each room who watches the
// page. For half of the rooms that is on the other server than the players are.
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

// patience bounds how long the pages have to show the last commands, and the removal of the tables.
const patience = 2 * time.Minute

// Config says how much load. All but Logger is required.
type Config struct {
	Rooms, Users int            // users are those of each room
	Duration     time.Duration  // of the measurement, behind the opening and joining
	Think        time.Duration  // how long a user takes from a new round to a pick, on average; 0 for no time at all
	Layout       journal.Layout // of the tables of events; default: journal.Classic
	Logger       *slog.Logger   // of the servers; default: slog.Default()
}

// Report is what was measured.
type Report struct {
	Rooms, Users int
	Took         time.Duration
	Commands     int // that were carried out
	Failed       int // that were not, or that no page has shown
	// Latencies are the times from the reply to a command to the page that shows it, or a later
	// one, in order; 0 where the page was faster.
	Latencies []time.Duration
}

// Run plays on tables of its own, which it deletes in the end.
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

// each does something with all games at once.
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

// Quantile returns the latency that a part of them does not exceed.
func (r *Report) Quantile(part float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(part*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

// String is the report in one line.
func (r *Report) String() string {
	return fmt.Sprintf("planningpoker %d rooms of %d users: %.0f commands a second, commit to page %d ms in the median, %d ms at 99%%, %d failed",
		r.Rooms, r.Users, float64(r.Commands)/r.Took.Seconds(),
		r.Quantile(0.5).Milliseconds(), r.Quantile(0.99).Milliseconds(), r.Failed)
}
