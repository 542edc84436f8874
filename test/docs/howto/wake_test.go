package howto_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
	"github.com/millrace-dev/millrace/test/docs/howto/wake"
	"github.com/millrace-dev/millrace/wakeup"
)

// broker runs a broker, and returns wake-ups over it.
type broker func(t *testing.T) wakeup.Config

var brokers = map[string]broker{"NATS": overNATS, "JetStream": overJetStream, "Redis": overRedis}

func runNATS(t *testing.T, jetStream bool) (url string) {
	t.Helper()
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, JetStream: jetStream, StoreDir: t.TempDir()})
	require.NoError(t, err)
	go ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	require.True(t, ns.ReadyForConnections(time.Minute))
	return ns.ClientURL()
}

func overNATS(t *testing.T) wakeup.Config {
	t.Helper()
	c, err := wake.OverNATS(runNATS(t, false), watermill.NopLogger{})
	require.NoError(t, err)
	return c
}

func overJetStream(t *testing.T) wakeup.Config {
	t.Helper()
	url := runNATS(t, true)
	admin, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	streams, err := admin.JetStream()
	require.NoError(t, err)
	_, err = streams.AddStream(&nats.StreamConfig{Name: wakeup.DefaultTopic, MaxAge: time.Minute, Storage: nats.MemoryStorage})
	require.NoError(t, err)
	c, err := wake.OverJetStream(url, watermill.NopLogger{})
	require.NoError(t, err)
	return c
}

func overRedis(t *testing.T) wakeup.Config {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	socket := filepath.Join(t.TempDir(), "redis")
	process := exec.CommandContext(t.Context(), path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	client := redis.NewClient(&redis.Options{Addr: socket})
	defer func() { assert.NoError(t, client.Close()) }()
	await.True(t, "the server replies", func() bool { return client.Ping(t.Context()).Err() == nil })
	c, err := wake.OverRedis(socket, watermill.NopLogger{})
	require.NoError(t, err)
	return c
}

// process opens the tables as a process of its own, whose groups hardly poll.
func process(t *testing.T, db *dynamotest.DB, wakeups wakeup.Config) *millrace.App {
	t.Helper()
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{
		Journal: journal.Config{Layout: journal.Packed, Shards: 1}, Wakeups: wakeups,
		Subscriber: func(_ string, c *subscriber.Config) { c.Timing.PollInterval = time.Hour },
	})
	require.NoError(t, err)
	return app
}

func starts(t *testing.T, app *millrace.App) {
	t.Helper()
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })
}

// received returns the number of wake-ups that have arrived in a process.
func received(app *millrace.App) (count uint64) {
	for _, component := range app.Components() {
		if receiver, is := component.(*wakeup.Receiver); is {
			count += receiver.Stats().Messages
		}
	}
	return count
}

func TestProcessesWakeEachOther(t *testing.T) {
	t.Parallel()
	for name, run := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wakeups := run(t)
			t.Cleanup(func() {
				assert.NoError(t, wakeups.Subscriber.Close())
				assert.NoError(t, wakeups.Publisher.Close())
			})
			db := dynamotest.New(t)
			shopping, mailing := process(t, db, wakeups), process(t, db, wakeups)
			placed := make(chan string, 10_000)
			require.NoError(t, mailing.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
				cqrs.NewGroupEventHandler(func(ctx context.Context, _ *shop.Placed) error {
					id, _, _ := subscriber.AggregateFromContext(ctx)
					placed <- id.Value
					return nil
				})))
			orders, err := millrace.Repository(shopping, shop.Orders, repository.Config{})
			require.NoError(t, err)
			starts(t, mailing)
			starts(t, shopping)
			place := func(id string) {
				_, err := orders.Execute(t.Context(), id, shop.Place("ada", 1))
				require.NoError(t, err)
			}
			// A receiver misses what was sent before the broker knows it. The group may have found
			// an event by its first poll, so the receiver must say that a wake-up has arrived.
			n := 0
			await.True(t, "wake-ups arrive", func() bool {
				n++
				place(fmt.Sprint("first", n))
				return received(mailing) > 0
			})
			for n := range 20 {
				place(fmt.Sprint(n))
				for received := ""; received != fmt.Sprint(n); {
					received = await.Receive(t, placed, "the event of another process")
				}
			}
		})
	}
}
