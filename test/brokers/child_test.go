package brokers

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/forward"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// childEnv holds the plan of a process.
const childEnv = "MILLRACE_FORWARD_CHILD"

// child is the plan of a process that forwards events to a broker, or receives messages of it.
type child struct {
	Database, Broker, Address string
	Receives                  bool
}

// publisher connects to a broker.
func publisher(broker, address string, logger watermill.LoggerAdapter) (message.Publisher, error) {
	switch broker {
	case "NATS":
		return forward.OverNATS(address, logger)
	case "Kafka":
		return forward.OverKafka([]string{address}, logger)
	case "PostgreSQL":
		db, err := sql.Open("postgres", address)
		if err != nil {
			return nil, err
		}
		return forward.OverPostgreSQL(db, logger)
	case "SQS":
		return newSQS(address), nil
	}
	return nil, fmt.Errorf("there is no broker %q", broker)
}

// subscriberOf connects to a broker.
func subscriberOf(broker, address string, logger watermill.LoggerAdapter) (message.Subscriber, error) {
	switch broker {
	case "NATS":
		return forward.FromNATS(address, "shop", logger)
	case "Kafka":
		return forward.FromKafka([]string{address}, "shop", logger)
	case "PostgreSQL":
		db, err := sql.Open("postgres", address)
		if err != nil {
			return nil, err
		}
		return forward.FromPostgreSQL(db, "shop", logger)
	}
	return nil, fmt.Errorf("there is no broker %q", broker)
}

func client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		Retryer: aws.NopRetryer{},
	})
}

func appConfig() millrace.Config {
	return millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2},
		Logger: watermill.NewSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		Subscriber: func(_ string, c *subscriber.Config) {
			c.Timing.LeaseDuration = 3 * time.Second // the next process takes over soon
			c.MaxNackResendSleep = time.Second
		},
	}
}

// forwardUntil forwards events until ctx ends.
func (c child) forwardUntil(ctx context.Context) error {
	config := appConfig()
	pub, err := publisher(c.Broker, c.Address, config.Logger)
	if err != nil {
		return err
	}
	app, err := millrace.Open(ctx, client(c.Database), config)
	if err != nil {
		return err
	}
	if err := forward.Forward(app, pub); err != nil {
		return err
	}
	return app.Run(ctx)
}

// receiveUntil receives messages until ctx ends.
func (c child) receiveUntil(ctx context.Context) error {
	config := appConfig()
	app, err := millrace.Open(ctx, client(c.Database), config)
	if err != nil {
		return err
	}
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	if err != nil {
		return err
	}
	sub, err := subscriberOf(c.Broker, c.Address, config.Logger)
	if err != nil {
		return err
	}
	inbox := millrace.Inbox{Subscriber: sub, Topics: []string{"orders"}, Receive: receive.Config{Key: func(m *message.Message) string { return m.Metadata.Get("key") }}}
	_, err = app.Receive(millrace.Group{Name: "other"}, inbox,
		command.Handler("place", orders, func(m *Wanted) (string, aggregate.Decision[shop.Order]) {
			return m.Order, shop.Place("anna", m.Number)
		}))
	if err != nil {
		return err
	}
	return errors.Join(app.Run(ctx), sub.Close())
}

func TestMain(m *testing.M) {
	plan := os.Getenv(childEnv)
	if plan == "" {
		os.Exit(m.Run())
	}
	var c child
	if err := json.Unmarshal([]byte(plan), &c); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	run := c.forwardUntil
	if c.Receives {
		run = c.receiveUntil
	}
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		os.Exit(1)
	}
}

// keeper keeps processes alive: it starts another one for each that ends.
type keeper struct {
	t       *testing.T
	plan    child
	mu      sync.Mutex
	running []*exec.Cmd
	ended   bool
	starts  int
	done    sync.WaitGroup
}

func keep(t *testing.T, plan child, processes int) *keeper {
	t.Helper()
	k := &keeper{t: t, plan: plan, running: make([]*exec.Cmd, processes)}
	dir := t.TempDir()
	t.Cleanup(func() {
		if t.Failed() {
			k.show(dir)
		}
	})
	for i := range processes {
		k.done.Add(1)
		go k.run(dir, i)
	}
	t.Cleanup(k.stop)
	return k
}

func (k *keeper) run(dir string, place int) {
	defer k.done.Done()
	plan, err := json.Marshal(k.plan)
	if err != nil {
		panic(err)
	}
	for {
		cmd := exec.Command(os.Args[0]) //nolint:gosec // this program
		cmd.Env = append(os.Environ(), childEnv+"="+string(plan))
		k.mu.Lock()
		if k.ended {
			k.mu.Unlock()
			return
		}
		k.starts++
		out, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d-%d.txt", place, k.starts)))
		if err == nil {
			cmd.Stdout, cmd.Stderr = out, out
			err = cmd.Start()
		}
		k.running[place] = cmd
		k.mu.Unlock()
		if err != nil {
			k.t.Error(err)
			return
		}
		_ = cmd.Wait() // an error if it was killed
		_ = out.Close()
		time.Sleep(100 * time.Millisecond)
	}
}

// show logs what the last processes have said at last.
func (k *keeper) show(dir string) {
	for place := range k.running {
		names, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%d-*.txt", place)))
		require.NoError(k.t, err)
		for _, name := range names {
			said, err := os.ReadFile(name)
			require.NoError(k.t, err)
			k.t.Logf("%s: %s", filepath.Base(name), said[max(0, len(said)-3000):])
		}
	}
}

// kill kills a process.
func (k *keeper) kill(place int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cmd := k.running[place]; cmd != nil {
		_ = cmd.Process.Kill()
	}
}

// stop ends all processes gracefully.
func (k *keeper) stop() {
	k.mu.Lock()
	k.ended = true
	for _, cmd := range k.running {
		if cmd != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	k.mu.Unlock()
	ended := make(chan struct{})
	go func() { k.done.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		require.FailNow(k.t, "the processes do not end")
	}
}
