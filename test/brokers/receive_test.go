package brokers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// Wanted is a message of another system, the n-th of an order.
type Wanted struct {
	Order  string
	Number int
}

// EventType returns the name of the message.
func (Wanted) EventType() string { return "Wanted" }

// TestMessagesOfEachBrokerAreHandledOnce has no queue of SQS: its Pub/Sub is not among the
// dependencies, and the emulator does not speak the protocol of the current SDK.
func TestMessagesOfEachBrokerAreHandledOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"NATS", "Kafka", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) { receiveAll(t, name, brokers[name](t)) })
	}
}

func receiveAll(t *testing.T, name string, b broker) {
	db := dynamotest.Open(dynamotest.WithSeed(41))
	t.Cleanup(db.Close)
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	app, err := millrace.Open(t.Context(), db.Client(), appConfig())
	require.NoError(t, err)
	repo, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	pub, err := publisher(name, b.address(), watermill.NopLogger{})
	require.NoError(t, err)
	total := events(t)
	sent := make(chan int, 1)
	go func() { sent <- send(t, pub, total) }()
	// Two processes that share a durable consumer of JetStream would not keep the order.
	processes := map[string]int{"NATS": 1, "Kafka": 2, "PostgreSQL": 2}[name]
	k := keep(t, child{Database: server.URL, Broker: name, Address: b.address(), Receives: true}, processes)

	throttling := db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.05))
	random := rand.New(rand.NewPCG(41, uint64(len(name))))
	for range 4 {
		time.Sleep(time.Duration(1500+random.IntN(2000)) * time.Millisecond)
		if random.IntN(3) == 0 {
			b.outage(time.Second)
		} else {
			k.kill(random.IntN(processes))
		}
	}
	throttling.Remove()
	messages := <-sent
	awaitOrders(t, repo, total)
	k.stop()
	stored := 0
	for _, err := range app.Journal().Tail(t.Context(), "other-inbox", time.Time{}) {
		require.NoError(t, err)
		stored++
	}
	for key := range min(keys, total) {
		n := 0
		for r, err := range app.Journal().AllEvents(t.Context(), aggregate.ID{Type: "order", Value: strconv.Itoa(key)}) {
			require.NoError(t, err)
			var e shop.Placed
			require.NoError(t, json.Unmarshal(r.Payload, &e))
			n++
			require.Equal(t, n, e.Total, "each message once, and in order: order %d", key)
		}
		require.Equal(t, (total-key+keys-1)/keys, n, "order %d", key)
	}
	require.NoError(t, pub.Close())
	t.Logf("%d messages of %d, sent %d times, stored %d times, %d processes", total, keys, messages, stored, k.starts)
}

// send publishes messages in the order of each key, each once more in four, and returns their
// number. After a failure it publishes the same message again.
func send(t *testing.T, pub message.Publisher, total int) (sent int) {
	random := rand.New(rand.NewPCG(41, 41))
	for n := range total {
		payload, err := json.Marshal(Wanted{strconv.Itoa(n % keys), n/keys + 1})
		assert.NoError(t, err)
		for range 1 + random.IntN(4)/3 {
			sent++
			for {
				msg := message.NewMessage(fmt.Sprint("wanted-", n), payload)
				msg.Metadata = message.Metadata{"key": strconv.Itoa(n % keys), "name": "Wanted"}
				if err := pub.Publish("orders", msg); err == nil || t.Context().Err() != nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		if total < 10_000 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	return sent
}

// awaitOrders waits until all orders have as many events as there are messages.
func awaitOrders(t *testing.T, repo *repository.Repository[shop.Order], total int) {
	t.Helper()
	most := -1
	for last := time.Now(); ; time.Sleep(time.Second) {
		var mu sync.Mutex
		var readers sync.WaitGroup
		have := 0
		for key := range min(keys, total) {
			readers.Add(1)
			go func() {
				defer readers.Done()
				order, err := repo.Load(t.Context(), strconv.Itoa(key))
				if err == nil {
					mu.Lock()
					have += int(order.Version) //nolint:gosec // it is small
					mu.Unlock()
				}
			}()
		}
		readers.Wait()
		if have >= total {
			return
		}
		if have > most {
			most, last = have, time.Now()
		}
		require.Less(t, time.Since(last), patience, "%d of %d messages are handled", most, total)
	}
}
