package brokers

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	howto "github.com/millrace-dev/millrace/test/docs/howto/forward"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// patience limits the time that a test waits without any progress.
const patience = 3 * time.Minute

// keys is the number of aggregates.
const keys = 200

// broker is a real broker, or an emulator.
type broker interface {
	address() string
	// outage makes the broker fail for a time.
	outage(time.Duration)
	// all returns the messages that the broker has accepted, in their order for each key.
	all() []*message.Message
}

var brokers = map[string]func(*testing.T) broker{"NATS": newNATS, "Kafka": newKafka, "PostgreSQL": newPostgres, "SQS": newQueue}

func events(t *testing.T) int {
	t.Helper()
	text := os.Getenv("MILLRACE_FORWARD_EVENTS")
	if text == "" {
		return 1_500
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestEventsReachEachBroker(t *testing.T) {
	t.Parallel()
	for name, start := range brokers {
		t.Run(name, func(t *testing.T) { forwardAll(t, name, start(t)) })
	}
}

func forwardAll(t *testing.T, name string, b broker) {
	db := dynamotest.Open(dynamotest.WithSeed(40))
	t.Cleanup(db.Close)
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	app, err := millrace.Open(t.Context(), db.Client(), appConfig())
	require.NoError(t, err)
	repo, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	total := events(t)
	k := keep(t, child{Database: server.URL, Broker: name, Address: b.address()}, 2)

	written := make(chan struct{})
	go func() {
		defer close(written)
		write(t, repo, total)
	}()
	throttling := db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.05))
	random := rand.New(rand.NewPCG(40, uint64(len(name))))
	kills, outages := 0, 0
	for begun := time.Now(); ; {
		require.Less(t, time.Since(begun), time.Hour)
		time.Sleep(time.Duration(1500+random.IntN(2000)) * time.Millisecond)
		if kills > 2 && outages > 0 && isClosed(written) && len(b.all()) > total*9/10 {
			break
		}
		if random.IntN(3) == 0 {
			outages++
			b.outage(time.Second)
		} else {
			kills++
			k.kill(random.IntN(2))
		}
	}
	throttling.Remove()
	awaitAll(t, b, total)
	k.stop()
	check(t, b.all(), total)
	t.Logf("%d events, %d kills, %d outages, %d messages", total, kills, outages, len(b.all()))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// write commits events of orders: the n-th event of an order has the total n. A short test writes
// slowly, so that processes are killed meanwhile.
func write(t *testing.T, repo *repository.Repository[shop.Order], total int) {
	work := make(chan int)
	var writers sync.WaitGroup
	for range 4 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for key := range work {
				for n := key; n < total; n += keys {
					if total < 10_000 {
						time.Sleep(20 * time.Millisecond)
					}
					_, err := repo.Execute(t.Context(), strconv.Itoa(key), shop.Place("anna", n/keys+1))
					// A conflict means that the first attempt was committed.
					for err != nil && !errors.Is(err, journal.ErrConflict) && t.Context().Err() == nil {
						_, err = repo.Execute(t.Context(), strconv.Itoa(key), shop.Place("anna", n/keys+1), repository.WithExpectedVersion(uint64(n/keys)))
					}
				}
			}
		}()
	}
	for key := range keys {
		work <- key
	}
	close(work)
	writers.Wait()
}

// awaitAll waits until all messages have arrived.
func awaitAll(t *testing.T, b broker, total int) {
	t.Helper()
	most := 0
	for last := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		distinct := map[string]bool{}
		for _, m := range b.all() {
			distinct[m.UUID] = true
		}
		if len(distinct) >= total {
			return
		}
		if len(distinct) > most {
			most, last = len(distinct), time.Now()
		}
		require.Less(t, time.Since(last), patience, "%d of %d messages, missing %v", most, total, missing(b.all(), total))
	}
}

// missing names the first messages that are missing.
func missing(all []*message.Message, total int) (names []string) {
	seen := map[string]bool{}
	for _, m := range all {
		seen[m.Metadata.Get(forward.KeyKey)+"/"+m.Metadata.Get(forward.SequenceNumberKey)] = true
	}
	for n := range total {
		if name := fmt.Sprintf("%d/%d", n%keys, n/keys+1); !seen[name] && len(names) < 20 {
			names = append(names, name)
		}
	}
	return names
}

// check compares the messages with the events.
func check(t *testing.T, all []*message.Message, total int) {
	t.Helper()
	seen := map[string]*message.Message{}
	next := map[string]int{}
	for _, m := range all {
		var content howto.OrderPlaced
		require.NoError(t, json.Unmarshal(m.Payload, &content))
		if before, again := seen[m.UUID]; again {
			require.JSONEq(t, string(before.Payload), string(m.Payload), "duplicates are equal")
			continue
		}
		seen[m.UUID] = m
		require.Equal(t, content.Order, m.Metadata.Get(forward.KeyKey))
		next[content.Order]++
		require.Equal(t, next[content.Order], content.Total, "the order is kept for each key: %s", content.Order)
		require.Equal(t, strconv.Itoa(content.Total), m.Metadata.Get(forward.SequenceNumberKey))
	}
	assert.Len(t, seen, total, "nothing is lost")
	assert.Len(t, next, min(keys, total), "all orders")
}
