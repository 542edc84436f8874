package awsproof

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// The load is that of docs/operations/sizing.md: payloads of 1 KB, states of 10 KB, 100 events for
// each aggregate, no cache. It differs in one point: payloads compress by a quarter.
const (
	loadTopic          = "loaded"
	eventsPerAggregate = 100
	payloadBytes       = 1000
	stateTexts         = 10
	loadWorkers        = 64
	secondsOfMonth     = 730 * 3600
)

// notes is the state of all aggregates of a run. It has the texts of the last events.
type notes struct{ Texts []string }

// noted is their event. At is the time before its commit.
type noted struct {
	At   time.Time
	Text string
}

func (noted) EventType() string { return "noted.v1" }

func (e noted) Apply(n *notes) {
	n.Texts = append(n.Texts[max(0, len(n.Texts)-stateTexts+1):len(n.Texts):len(n.Texts)], e.Text)
}

func notesOf(j *journal.Journal, topic string) (*repository.Repository[notes], error) {
	return repository.New(j, aggregate.Define[notes](topic, noted{}), repository.Config{})
}

func note(text string) aggregate.Decision[notes] {
	return func(notes) (aggregate.Events[notes], error) {
		return aggregate.Events[notes]{noted{time.Now(), text}}, nil
	}
}

// randomText returns a text of the size of a payload. zstd makes it about a quarter smaller.
func randomText() string {
	b := make([]byte, payloadBytes*3/4-60)
	_, _ = rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

// load commits with a constant rate, while a projection and another group receive the events.
func (p *proof) load(ctx context.Context) (string, error) {
	j, err := p.journal(ctx, journal.Packed)
	if err != nil {
		return "", err
	}
	repo, err := notesOf(j, loadTopic)
	if err != nil {
		return "", err
	}
	counts := projection.Table{Name: p.prefix + "-counts", PartitionKey: "id"}
	if err := projection.CreateTable(ctx, p.Client, counts); err != nil {
		return "", err
	}
	project, err := projection.NewRows(p.Client, projection.RowTable{Table: counts}, projection.Config{}, projection.OnRow(
		func(context.Context, noted, *journal.Record) (projection.RowUpdate, error) {
			return projection.RowUpdate{Expression: "ADD events :one", Values: item{":one": one}}, nil
		}))
	if err != nil {
		return "", err
	}
	l := loading{n: max(1, int(p.Rate*p.Duration.Seconds()))}
	before, start := p.meter.total(), time.Now()
	var committing, projecting, handling *journal.Units
	err = together(ctx, 3, func(ctx context.Context, part int) (err error) {
		switch part {
		case 0:
			ctx, committing = journal.CountUnits(ctx)
			err = l.commit(ctx, repo, p.Rate)
		case 1:
			ctx, projecting = journal.CountUnits(ctx)
			l.projected, err = receive(ctx, subscriber.Config{Journal: j, ConsumerGroup: "projection", Positions: project}, loadTopic, l.n, loadWorkers, project.Handle)
		case 2:
			ctx, handling = journal.CountUnits(ctx)
			l.handled, err = receive(ctx, subscriber.Config{Journal: j, ConsumerGroup: "handler"}, loadTopic, l.n, loadWorkers, l.arrive)
		}
		return err
	})
	took, all := time.Since(start), p.meter.total().minus(before)
	if err == nil {
		err = l.check(ctx, p.Client, counts)
	}
	return l.report(p, took, all, map[string]*journal.Units{"commits and loads": committing, "projection, except its rows": projecting, "other group": handling}), err
}

// loading is the state of a load of n events.
type loading struct {
	n                  int
	projected, handled arrivals

	mu             sync.Mutex
	commits, delay []time.Duration
}

func (l *loading) commit(ctx context.Context, repo *repository.Repository[notes], rate float64) error {
	active := max(4*loadWorkers, int(rate)) // so that two calls never meet on an aggregate
	return paced(ctx, rate, l.n, loadWorkers, func(ctx context.Context, k int) error {
		start := time.Now()
		_, err := repo.Execute(ctx, fmt.Sprint(k/(active*eventsPerAggregate), "-", k%active), note(randomText()))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.commits = append(l.commits, time.Since(start))
		return err
	})
}

// arrive measures the time from before the commit of an event until it arrives.
func (l *loading) arrive(msg *message.Message) error {
	now := time.Now()
	r, ok := subscriber.RecordFromContext(msg.Context())
	if !ok {
		return errors.New("a message without a record")
	}
	at, err := committedAt(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = append(l.delay, now.Sub(at))
	return err
}

// check compares the counts of the projection with the number of commits.
func (l *loading) check(ctx context.Context, client *dynamodb.Client, counts projection.Table) error {
	projected := 0
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &counts.Name, ConsistentRead: aws.Bool(true)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			if events, ok := it["events"].(*types.AttributeValueMemberN); ok {
				var n int
				_, _ = fmt.Sscan(events.Value, &n)
				projected += n
			}
		}
	}
	if projected != l.n {
		return fmt.Errorf("the projection counted %d events, and %d were committed", projected, l.n)
	}
	return nil
}

func (l *loading) report(p *proof, took time.Duration, all amount, parts map[string]*journal.Units) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	committed := len(l.commits)
	fmt.Fprintf(&b, "%d of %d events were committed in the packed layout with 16 shards, and received by both groups after %v: %.0f a second, of %.0f.\n"+
		"Payloads have %d bytes, random base64, and states up to %d texts of them.\n\n",
		committed, l.n, took.Round(time.Second), float64(committed)/took.Seconds(), p.Rate, payloadBytes, stateTexts)
	fmt.Fprintf(&b, "| time of | median | 95 %% | 99 %% |\n|---|---|---|---|\n")
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"Execute", l.commits}, {"from before Execute until the other group has the event", l.delay}} {
		fmt.Fprintf(&b, "| %s | %v | %v | %v |\n", row.name, percentile(row.times, 50), percentile(row.times, 95), percentile(row.times, 99))
	}
	fmt.Fprintf(&b, "\nProjection: %v. Other group: %v.\n\n| part | read units an event | write units an event |\n|---|---|---|\n", l.projected, l.handled)
	events := float64(max(1, committed))
	for _, name := range []string{"commits and loads", "projection, except its rows", "other group"} {
		if units := parts[name]; units != nil {
			fmt.Fprintf(&b, "| %s | %.2f | %.2f |\n", name, units.Read()/events, units.Write()/events)
		}
	}
	month := all.dollars(p.Region) / events * p.Rate * secondsOfMonth
	fmt.Fprintf(&b, "| **in all** | %.2f | %.2f |\n\nAt %.0f events a second all year, this is about $%.0f a month on demand.\nCompare that with docs/operations/sizing.md.\n",
		all.Read/events, (all.Write+all.Presumed)/events, p.Rate, month)
	return b.String()
}
