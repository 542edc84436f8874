package story_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/subscriber"
)

// servers are the servers at two places. At each place one server runs after another.
type servers struct {
	t      *testing.T
	db     *dynamodb.Client
	faults *faultMix

	mu      sync.Mutex
	at      [2]*server
	all     []*server
	closing sync.WaitGroup
}

type server struct {
	*service.Server
	connection *connection
}

func start(t *testing.T, db *dynamodb.Client, faults *faultMix) *servers {
	t.Helper()
	s := &servers{t: t, db: db, faults: faults}
	t.Cleanup(s.closing.Wait)
	for place := range s.at {
		s.start(t.Context(), place)
		t.Cleanup(func() {
			faults.calm.Store(true)
			last := s.in(place)
			assert.NoError(t, last.Close())
			last.connection.Close()
		})
	}
	return s
}

func (s *servers) start(ctx context.Context, place int) {
	c := s.faults.connect(s.db)
	started, err := service.Start(context.WithoutCancel(ctx), c.client, service.Config{
		Subscriber: func(_ string, c *subscriber.Config) { // so that the story is short
			c.Timing.LeaseDuration, c.Timing.TrailingDelay = 2*time.Second, time.Second
		},
		Logger: slog.New(slog.DiscardHandler), // most failed requests are logged
	})
	if !assert.NoError(s.t, err) {
		return
	}
	c.started.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[place] = &server{started, c}
	s.all = append(s.all, s.at[place])
}

func (s *servers) in(place int) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[place]
}

// url returns a function that returns the URL of the current server at a place.
func (s *servers) url(place int) func() string {
	return func() string { return s.in(place).URL() }
}

// restart closes a server as a deployment does, and starts the next one.
func (s *servers) restart(ctx context.Context, place int) {
	old := s.in(place)
	if err := old.Close(); err != nil {
		s.t.Log("with these faults a server may leave something behind:", err)
	}
	old.connection.Close()
	s.start(ctx, place)
}

// crash cuts the connection of a server while it works: it can neither finish nor release anything.
// The next one starts at once.
func (s *servers) crash(ctx context.Context, place int) {
	crashed := s.in(place)
	crashed.connection.Close()
	s.start(ctx, place)
	s.closing.Add(1)
	go func() {
		defer s.closing.Done()
		_ = crashed.Close() // it has no connection any more
	}()
}

// duplicates counts the writes for events that had been applied before.
func (s *servers) duplicates() (n uint64) {
	for _, each := range s.all {
		n += each.Projection.Stats().Dropped
	}
	return n
}
