package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/wake"
	"github.com/millrace-dev/millrace/wakeup"
)

// writing configures another process, which commits events one after the other, with pauses.
type writing struct {
	AccessKey  string // of the database
	Type       string
	Aggregates int
	Commits    int
	Pause      time.Duration // average
	NATS       string        // address of the server that its wake-ups go to; empty for none
}

// writerEnv holds a writing for a process of this program that only writes.
const writerEnv = "MILLRACE_BENCH_WRITE"

// write runs in the other process, and prints the median time of a commit in nanoseconds. Each
// event contains the time at which its commit began, since both processes use the same clock.
func write(ctx context.Context, order string) error {
	var w writing
	if err := json.Unmarshal([]byte(order), &w); err != nil {
		return err
	}
	j, err := journal.Open(ctx, dynamolocal.NewClient(dynamolocal.EndpointFromEnv(), w.AccessKey), journal.Config{})
	if err != nil {
		return err
	}
	if w.NATS != "" {
		wakeups, end, err := overNATS(j, w.NATS)
		if err != nil {
			return err
		}
		defer end()
		sender, err := wakeup.NewSender(wakeups, nil)
		if err != nil {
			return err
		}
		defer func() { _ = sender.Close() }()
	}
	repo, err := repository.New(j, define(w.Type), repository.Config{Snapshots: repository.Never, Cache: w.Aggregates})
	if err != nil {
		return err
	}
	commits := make([]time.Duration, w.Commits)
	for i := range commits {
		time.Sleep(rand.N(2 * w.Pause))
		commits[i], err = timed(func() error {
			_, err := repo.Execute(ctx, fmt.Sprint("a", i%w.Aggregates), depositNow)
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Println(median(commits).Nanoseconds())
	return nil
}

// overNATS returns wake-ups over a NATS server, as the how-to on wake-ups does.
func overNATS(j *journal.Journal, url string) (config wakeup.Config, end func(), err error) {
	config, err = wake.OverNATS(url, watermill.NopLogger{})
	config.Journal = j
	return config, func() {
		_ = config.Publisher.Close()
		_ = config.Subscriber.Close()
	}, err
}

// latencyAcross measures the time from before a commit in another process until a handler in this
// process receives its event. It compares that with the poll interval, which is constant here. It
// also measures with the default intervals, for shards with few events.
func (b *bench) latencyAcross(ctx context.Context) error {
	const name, interval = "latency-across", 200 * time.Millisecond
	busy := writing{Type: name, Aggregates: 50, Commits: 200, Pause: 20 * time.Millisecond}
	took, _, err := b.across(ctx, subscriber.Config{Timing: subscriber.Timing{PollInterval: interval, MaxPollInterval: interval}}, busy)
	if err != nil {
		return err
	}
	fmt.Printf("# %s: %d commits of another process, polled every %v; median %v, 95th percentile %v\n", name, len(took), interval,
		median(took).Round(time.Millisecond), percentile(took, 95).Round(time.Millisecond))
	fmt.Printf("ratio %s %.2f\n", name, float64(median(took))/float64(interval))
	quiet := writing{Type: name + "-quiet", Aggregates: 50, Commits: 60, Pause: 100 * time.Millisecond}
	if took, _, err = b.across(ctx, subscriber.Config{}, quiet); err != nil {
		return err
	}
	fmt.Printf("# %s: %d commits to shards that are quiet for seconds, polled as by default; median %v, 95th percentile %v\n", name, len(took),
		median(took).Round(time.Millisecond), percentile(took, 95).Round(time.Millisecond))
	return nil
}

// wakeup measures the time from before a commit in another process until a handler in this process
// receives its event, woken over NATS. It compares that with the time of one commit.
func (b *bench) wakeup(ctx context.Context) error {
	const name = "wakeup"
	broker, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	if err != nil {
		return err
	}
	go broker.Start()
	defer broker.Shutdown()
	if !broker.ReadyForConnections(time.Minute) {
		return errors.New("the NATS server does not start")
	}
	wakeups, end, err := overNATS(b.j, broker.ClientURL())
	if err != nil {
		return err
	}
	defer end()
	receiver, err := wakeup.NewReceiver(wakeups, nil)
	if err != nil {
		return err
	}
	receiving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		receiver.Run(receiving)
	}()
	defer running.Wait()
	defer stop()
	w := writing{Type: name, Aggregates: 50, Commits: 600, Pause: 20 * time.Millisecond, NATS: broker.ClientURL()}
	took, commit, err := b.across(ctx, subscriber.Config{}, w)
	if err != nil {
		return err
	}
	fmt.Printf("# %s: %d commits of another process; median %v, 99th percentile %v; one commit %v\n", name, len(took),
		median(took).Round(10*time.Microsecond), percentile(took, 99).Round(10*time.Microsecond), commit.Round(10*time.Microsecond))
	fmt.Printf("ratio %s %.2f\n", name, float64(median(took))/float64(commit))
	return nil
}

// across returns the times from before a commit in another process until a handler receives its
// event, and the median time of a commit.
func (b *bench) across(ctx context.Context, config subscriber.Config, w writing) (took []time.Duration, commit time.Duration, err error) {
	config.Journal, config.ConsumerGroup = b.j, watermill.NewShortUUID()
	sub, err := subscriber.NewSubscriber(config, nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = sub.Close() }()
	messages, err := sub.Subscribe(ctx, w.Type)
	if err != nil {
		return nil, 0, err
	}
	w.AccessKey = b.accessKey
	wait, err := startWriter(ctx, w)
	if err != nil {
		return nil, 0, err
	}
	for len(took) < w.Commits {
		select {
		case msg := <-messages:
			now := time.Now()
			var e deposited
			if err := json.Unmarshal(msg.Payload, &e); err != nil {
				return nil, 0, err
			}
			took = append(took, now.Sub(time.Unix(0, int64(e.Amount))))
			msg.Ack()
		case <-time.After(time.Minute):
			_, err := wait()
			return nil, 0, errors.Join(fmt.Errorf("%d of %d events arrived", len(took), w.Commits), err)
		}
	}
	commit, err = wait()
	return took, commit, err
}

// startWriter runs this program again, as the other process. wait returns what it has printed.
func startWriter(ctx context.Context, w writing) (wait func() (commit time.Duration, err error), err error) {
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
	var out bytes.Buffer
	other.Stdout, other.Stderr = &out, os.Stderr
	return func() (time.Duration, error) {
		if err := other.Wait(); err != nil {
			return 0, err
		}
		nanoseconds, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		return time.Duration(nanoseconds), err
	}, other.Start()
}

func percentile[N interface{ ~int64 | ~float64 }](values []N, p int) N {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
