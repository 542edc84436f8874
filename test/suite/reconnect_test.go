package suite_test

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
)

// The database is killed when a third and when a half of ten thousand messages are published. The
// test is not parallel: messages have to arrive within a minute of each other.
func TestPubSubReconnectsToADatabaseThatWasKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("publishes ten thousand messages, which takes a while")
	}
	if watermillRaces() {
		t.Skip("Watermill's TestReconnect has a data race of its own: it reads the list of published messages while another " +
			"goroutine appends to it. test/cmd/check compiles that package without the detector.")
	}
	inLayouts(t, reconnects)
}

func reconnects(t *testing.T, layout journal.Layout) {
	t.Helper()
	db := startKillable(t)
	s := storeIn(t, db.client, layout)
	stopRestarts := db.restartOnSignal(t)

	tests.TestReconnect(t,
		tests.TestContext{
			TestID: tests.NewTestID(),
			Features: tests.Features{
				GuaranteedOrder: true, Persistent: true,
				RestartServiceCommand: []string{"kill", "-HUP", strconv.Itoa(os.Getpid())},
			},
		},
		func(t *testing.T) (message.Publisher, message.Subscriber) {
			return lastAfterPublish(t, s, 10_000)
		},
	)

	assert.Equal(t, 2, stopRestarts(), "the database must have been killed twice")
}

// lastAfterPublish delivers the last message a moment after all calls of Publish have returned.
// Watermill's test appends each message to a list after Publish, stops reading at the last message,
// and compares with the list. Otherwise the last message could arrive before it is in the list.
func lastAfterPublish(t *testing.T, s store, count int) (message.Publisher, message.Subscriber) {
	t.Helper()
	pub, sub := s.inOrder().pubSub(t)
	all := make(chan struct{})
	received := map[string]bool{}
	sub, err := message.MessageTransformSubscriberDecorator(func(msg *message.Message) {
		received[msg.UUID] = true
		if len(received) < count {
			return
		}
		select {
		case <-all:
			time.Sleep(time.Second)
		case <-t.Context().Done():
		}
	})(sub)
	require.NoError(t, err)
	return &countdown{Publisher: pub, left: count, all: all}, sub
}

// countdown closes a channel when a number of messages are published.
type countdown struct {
	message.Publisher
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func (c *countdown) Publish(topic string, messages ...*message.Message) error {
	err := c.Publisher.Publish(topic, messages...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left -= len(messages); c.left == 0 {
		close(c.all)
	}
	return nil
}

// watermillRaces reports whether Watermill's tests are compiled with the race detector; see the
// Makefile.
func watermillRaces() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings["-race"] == "true" && !strings.Contains(settings["-gcflags"], "watermill/pubsub/tests=-race=false")
}
