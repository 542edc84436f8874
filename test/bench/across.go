package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// writing configures another process, which commits events one after the other, with pauses.
type writing struct {
	AccessKey  string // of the database
	Type       string
	Aggregates int
	Commits    int
	Pause      time.Duration // average
}

// writerEnv holds a writing for a process of this program that only writes.
const writerEnv = "MILLRACE_BENCH_WRITE"

// write runs in the other process. Each event contains the time at which its commit began, since
// both processes use the same clock.
func write(ctx context.Context, order string) error {
	var w writing
	if err := json.Unmarshal([]byte(order), &w); err != nil {
		return err
	}
	j, err := journal.Open(ctx, dynamolocal.NewClient(dynamolocal.EndpointFromEnv(), w.AccessKey), journal.Config{})
	if err != nil {
		return err
	}
	repo, err := repository.New(j, define(w.Type), repository.Config{Snapshots: repository.Never, Cache: w.Aggregates})
	if err != nil {
		return err
	}
	for i := range w.Commits {
		time.Sleep(rand.N(2 * w.Pause))
		_, err := repo.Execute(ctx, fmt.Sprint("a", i%w.Aggregates), depositNow)
		if err != nil {
			return err
		}
	}
	return nil
}

// latencyAcross measures the time from before a commit in another process until a handler in this
// process receives its event. It compares that with the poll interval, which is constant here. It
// also measures with the default intervals, for shards with few events.
func (b *bench) latencyAcross(ctx context.Context) error {
	const name, interval = "latency-across", 200 * time.Millisecond
	busy := writing{Type: name, Aggregates: 50, Commits: 200, Pause: 20 * time.Millisecond}
	took, err := b.across(ctx, subscriber.Config{Timing: subscriber.Timing{PollInterval: interval, MaxPollInterval: interval}}, busy)
	if err != nil {
		return err
	}
	fmt.Printf("# %s: %d commits of another process, polled every %v; median %v, 95th percentile %v\n", name, len(took), interval,
		median(took).Round(time.Millisecond), percentile(took, 95).Round(time.Millisecond))
	fmt.Printf("ratio %s %.2f\n", name, float64(median(took))/float64(interval))
	quiet := writing{Type: name + "-quiet", Aggregates: 50, Commits: 60, Pause: 100 * time.Millisecond}
	if took, err = b.across(ctx, subscriber.Config{}, quiet); err != nil {
		return err
	}
	fmt.Printf("# %s: %d commits to shards that are quiet for seconds, polled as by default; median %v, 95th percentile %v\n", name, len(took),
		median(took).Round(time.Millisecond), percentile(took, 95).Round(time.Millisecond))
	return nil
}

func (b *bench) across(ctx context.Context, config subscriber.Config, w writing) ([]time.Duration, error) {
	config.Journal, config.ConsumerGroup = b.j, watermill.NewShortUUID()
	sub, err := subscriber.NewSubscriber(config, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Close() }()
	messages, err := sub.Subscribe(ctx, w.Type)
	if err != nil {
		return nil, err
	}
	w.AccessKey = b.accessKey
	wait, err := startWriter(ctx, w)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for len(took) < w.Commits {
		select {
		case msg := <-messages:
			now := time.Now()
			var e deposited
			if err := json.Unmarshal(msg.Payload, &e); err != nil {
				return nil, err
			}
			took = append(took, now.Sub(time.Unix(0, int64(e.Amount))))
			msg.Ack()
		case <-time.After(time.Minute):
			return nil, errors.Join(fmt.Errorf("%d of %d events arrived", len(took), w.Commits), wait())
		}
	}
	return took, wait()
}

// startWriter runs this program again, as the other process.
func startWriter(ctx context.Context, w writing) (wait func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	other := exec.CommandContext(ctx, program)
	other.Env = append(os.Environ(), writerEnv+"="+string(order))
	other.Stderr = os.Stderr
	return other.Wait, other.Start()
}

func percentile[N interface{ ~int64 | ~float64 }](values []N, p int) N {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
