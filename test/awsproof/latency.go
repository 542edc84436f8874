package awsproof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/wake"
	"github.com/millrace-dev/millrace/wakeup"
)

// Writing is the work of the other process: commits one after the other, with pauses.
type Writing struct {
	Prefix, Topic string
	Commits       int
	NATS          string // address of the server for wake-ups; empty for none
}

// written is what the other process reports about its work.
type written struct {
	Commits  []time.Duration
	Consumed amount
}

// Write does the work of the other process, and prints what it consumed.
func Write(ctx context.Context, client *dynamodb.Client, w Writing, out io.Writer) error {
	m := &meter{prefix: w.Prefix, budget: MaxBudget, spent: func() {}}
	j, err := journal.Open(ctx, m.client(client), journal.Config{Tables: tablesOf(w.Prefix, journal.Packed)})
	if err != nil {
		return err
	}
	if w.NATS != "" {
		wakeups, err := wake.OverNATS(w.NATS, watermill.NopLogger{})
		if err != nil {
			return err
		}
		wakeups.Journal = j
		defer func() { _ = errors.Join(wakeups.Publisher.Close(), wakeups.Subscriber.Close()) }()
		sender, err := wakeup.NewSender(wakeups, nil)
		if err != nil {
			return err
		}
		defer func() { _ = sender.Close() }()
	}
	commits, err := write(ctx, j, w.Topic, w.Commits)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(written{commits, m.total()})
}

func write(ctx context.Context, j *journal.Journal, topic string, n int) (commits []time.Duration, err error) {
	const aggregates, pause = 50, 50 * time.Millisecond
	repo, err := notesOf(j, topic)
	if err != nil {
		return nil, err
	}
	for k := range n {
		if !sleep(ctx, rand.N(2*pause)) {
			return nil, context.Cause(ctx)
		}
		start := time.Now()
		if _, err := repo.Execute(ctx, fmt.Sprint(k%aggregates), note("")); err != nil {
			return nil, err
		}
		commits = append(commits, time.Since(start))
	}
	return commits, nil
}

// committedAt returns the time before the commit of an event.
func committedAt(r *journal.Record) (time.Time, error) {
	var e noted
	err := json.Unmarshal(r.Payload, &e)
	return e.At, err
}

// latency measures the time from before a commit until a group receives the event.
func (p *proof) latency(ctx context.Context) (string, error) {
	j, err := p.journal(ctx, journal.Packed)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| commits of | median | 95 % | 99 % | one commit, median |\n|---|---|---|---|---|\n")
	for _, way := range []struct {
		topic, name string
		write       func(ctx context.Context, topic string) ([]time.Duration, error)
	}{
		{"within", "this process", func(ctx context.Context, topic string) ([]time.Duration, error) {
			return write(ctx, j, topic, p.Samples)
		}},
		{"across", "another process, polled", func(ctx context.Context, topic string) ([]time.Duration, error) { return p.other(ctx, topic, "") }},
		{"woken", "another process, woken over NATS", func(ctx context.Context, topic string) ([]time.Duration, error) { return p.woken(ctx, j, topic) }},
	} {
		if way.topic != "within" && p.Writer == nil {
			fmt.Fprintf(&b, "| %s | not measured: there is no other process |\n", way.name)
			continue
		}
		var arrived, commits []time.Duration
		err := together(ctx, 2, func(ctx context.Context, part int) (err error) {
			if part == 0 {
				commits, err = way.write(ctx, way.topic)
				return err
			}
			_, err = receive(ctx, subscriber.Config{Journal: j, ConsumerGroup: "latency"}, way.topic, p.Samples, 1, func(msg *message.Message) error {
				now := time.Now()
				r, _ := subscriber.RecordFromContext(msg.Context())
				at, err := committedAt(r)
				arrived = append(arrived, now.Sub(at))
				return err
			})
			return err
		})
		if err != nil {
			return b.String(), fmt.Errorf("%s: %w", way.name, err)
		}
		fmt.Fprintf(&b, "| %s | %v | %v | %v | %v |\n", way.name, percentile(arrived, 50), percentile(arrived, 95), percentile(arrived, 99), percentile(commits, 50))
	}
	return b.String(), nil
}

// other lets another process commit.
func (p *proof) other(ctx context.Context, topic, nats string) ([]time.Duration, error) {
	process, err := p.Writer(ctx, Writing{Prefix: p.prefix, Topic: topic, Commits: p.Samples, NATS: nats})
	if err != nil {
		return nil, err
	}
	printed, err := process.Output()
	if err != nil {
		return nil, fmt.Errorf("the other process: %w", err)
	}
	var w written
	err = json.Unmarshal(printed, &w)
	p.meter.add(w.Consumed)
	return w.Commits, err
}

// woken runs a NATS server, and receives the wake-ups of the other process.
func (p *proof) woken(ctx context.Context, j *journal.Journal, topic string) (commits []time.Duration, err error) {
	broker, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	if err != nil {
		return nil, err
	}
	go broker.Start()
	defer broker.Shutdown()
	if !broker.ReadyForConnections(time.Minute) {
		return nil, errors.New("the NATS server does not start")
	}
	wakeups, err := wake.OverNATS(broker.ClientURL(), watermill.NopLogger{})
	if err != nil {
		return nil, err
	}
	wakeups.Journal = j
	defer func() { err = errors.Join(err, wakeups.Publisher.Close(), wakeups.Subscriber.Close()) }()
	receiver, err := wakeup.NewReceiver(wakeups, nil)
	if err != nil {
		return nil, err
	}
	receiving, stop := context.WithCancel(ctx)
	err = together(ctx, 2, func(ctx context.Context, part int) (err error) {
		if part == 1 {
			receiver.Run(receiving)
			return nil
		}
		defer stop()
		commits, err = p.other(ctx, topic, broker.ClientURL())
		_ = sleep(ctx, time.Second) // the last wake-ups are under way
		return err
	})
	stop()
	return commits, err
}
