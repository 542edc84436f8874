//go:build unix

package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal"
)

// world is a run.
type world struct {
	Config
	client  *dynamodb.Client
	writers *writers
	keeper  *keeper
	logs    map[string]*reader // by group
	written history
	// There was no progress any more, although not all events were consumed.
	stuck bool
}

// Run runs until all events are consumed, or there is no progress any more, and ends all its
// processes. An error means that there is no result. Mistakes of the library are in the report.
func Run(ctx context.Context, config Config) (Report, error) {
	config.setDefaults()
	accessKey := rand.Text()
	w := &world{
		Config: config, client: dynamolocal.NewClient(config.Endpoint, accessKey), logs: map[string]*reader{},
	}
	defer func() {
		if c, ok := w.client.Options().HTTPClient.(*http.Client); ok {
			c.CloseIdleConnections()
		}
	}()
	if err := w.prepare(ctx); err != nil {
		return Report{}, err
	}
	keeper, err := newKeeper(config, accessKey)
	if err != nil {
		return Report{}, err
	}
	w.keeper = keeper
	defer keeper.end()
	for _, g := range keeper.groups {
		w.logs[g.name] = &reader{path: keeper.logOf(g.name)}
	}
	for _, phase := range []func(context.Context) error{w.disrupt, w.drain, w.comeBack} {
		if err := phase(ctx); err != nil {
			return Report{}, err
		}
	}
	return w.report(ctx)
}

// prepare creates the tables.
func (w *world) prepare(ctx context.Context) error {
	if err := journal.Create(ctx, w.client, journal.Config{Shards: shards, Layout: w.Layout}); err != nil {
		return err
	}
	if err := createEffects(ctx, w.client); err != nil {
		return err
	}
	j, err := journal.Open(ctx, w.client, journal.Config{RetryBudget: retryBudget})
	if err != nil {
		return err
	}
	w.writers, err = newWriters(j, w.Pause)
	return err
}

// disrupt is the first phase: writers write, and members are disrupted.
func (w *world) disrupt(ctx context.Context) error {
	if err := w.keeper.fill((w.Members + 1) / 2); err != nil {
		return err
	}
	w.keeper.disrupting = true
	w.keeper.disrupt()
	var failed error
	err := w.meanwhile(ctx, func(ctx context.Context) {
		failed = w.writers.run(ctx, w.Seed, time.Now().Add(w.Duration))
	})
	w.keeper.disrupting = false
	return errors.Join(err, failed)
}

// drain is the second phase: members run without disruptions until they have consumed all events.
func (w *world) drain(ctx context.Context) error {
	if err := w.keeper.fill(1); err != nil {
		return err
	}
	if err := w.consumed(ctx); err != nil {
		return err
	}
	return w.keeper.closeAll(ctx)
}

// comeBack is the third phase: after all members have closed, new members must receive only new
// events. There is a new event in each shard, and a repeated event would arrive before it.
func (w *world) comeBack(ctx context.Context) error {
	if w.stuck {
		return nil // it would report the same
	}
	todo := map[int]bool{}
	for n := range shards {
		todo[n] = true
	}
	for n := 0; len(todo) > 0; n++ {
		thing := fmt.Sprint("last", n)
		if shard := w.writers.journal.Internal().Shard(aggregate.ID{Type: topic, Value: thing}); todo[shard] {
			delete(todo, shard)
			e := happened{Token: w.writers.tokens.Add(1), Amount: n}
			if _, err := w.writers.appendTo(ctx, thing, aggregate.Events[state]{e}); err != nil {
				return err
			}
		}
	}
	if err := w.keeper.fill(1); err != nil {
		return err
	}
	if err := w.consumed(ctx); err != nil {
		return err
	}
	return w.keeper.closeAll(ctx)
}

// meanwhile supervises the members while something else runs.
func (w *world) meanwhile(ctx context.Context, do func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		do(ctx)
	}()
	err := w.keeper.superviseUntil(ctx, over)
	cancel()
	<-over
	return err
}

// report compares the records of the members with the journal.
func (w *world) report(ctx context.Context) (Report, error) {
	want, findings, err := w.writers.history(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{Kills: w.keeper.seen["kills"], Seen: w.keeper.seen, Findings: append(findings, w.keeper.findings...)}
	for _, name := range w.Groups {
		log := w.logs[name]
		if err := log.read(); err != nil {
			return Report{}, err
		}
		for _, e := range log.entries {
			if e.Kind == deliver {
				r.Deliveries++
			}
			if e.Kind == nack || e.Kind == trouble {
				r.Seen[string(e.Kind)]++
			}
		}
		r.Seen["repeats"] += repeats(log.entries)
		file := filepath.Base(log.path)
		r.Findings = slices.Concat(r.Findings,
			checkSkips(file, log.entries, name == projecting), checkRepeats(file, log.entries, w.Lease))
		if name == plain {
			r.Findings = append(r.Findings, checkAcked(file, log.entries, want)...)
			continue
		}
		model, err := readEffects(ctx, w.client)
		if err != nil {
			return Report{}, err
		}
		r.Findings = append(r.Findings, checkEffects(model, want)...)
	}
	r.Seen["events"] = want.events()
	for what, n := range w.writers.seen {
		r.Seen[what] = n
	}
	return r, nil
}
