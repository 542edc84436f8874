package publisher_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

func TestAClosedPublisherPublishesNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})

	require.NoError(t, p.Close())
	require.NoError(t, p.Close(), "Close may be called again")

	require.ErrorIs(t, p.Publish("order", messageTo(order1, "x")), publisher.ErrPublisherClosed)
	assert.Zero(t, s.eventCount())
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()
	result := async(p, "order", messagesTo(order1, "m", 100)...)
	await.End(t, arrived, "the first commit")

	closed := make(chan error, 3)
	for range 3 {
		go func() { closed <- p.Close() }()
	}
	eventually(t, func() bool {
		return errors.Is(p.Publish("order"), publisher.ErrPublisherClosed)
	}, "Close has begun")
	assert.Empty(t, closed, "Close must not return while a commit is under way")
	release()
	release()

	for range 3 {
		require.NoError(t, await.Receive(t, closed, "Close"))
	}
	require.NoError(t, await.Receive(t, result, "Publish"))
	assert.EqualValues(t, 100, s.version(order1))
}

func TestCloseWaitsForAPublishThatHasOnlyBegun(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	begun, goOn := make(chan struct{}), make(chan struct{})
	p := s.publisher(publisher.Config{AggregateID: func(string, *message.Message) (string, error) {
		close(begun)
		<-goOn
		return "1", nil
	}})
	result := async(p, "order", message.NewMessage("1", nil))
	await.End(t, begun, "Publish to begin")

	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	eventually(t, func() bool {
		return errors.Is(p.Publish("order"), publisher.ErrPublisherClosed)
	}, "Close has begun")
	close(goOn)

	require.NoError(t, await.Receive(t, result, "Publish"))
	require.NoError(t, await.Receive(t, closed, "Close"))
	assert.EqualValues(t, 1, s.version(order1))
}

func TestCloseCutsOffWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p, err := publisher.NewPublisher(publisher.Config{Journal: s.Journal, CloseTimeout: 50 * time.Millisecond}, nil)
	require.NoError(t, err)
	arrived, _ := s.wire.hold()
	inFlight := async(p, "order", messageTo(order1, "x"))
	await.End(t, arrived, "the commit, which will not get through")
	waiting := async(p, "order", messageTo(order1, "y"))
	eventually(t, func() bool { return p.Queued(order1) == 2 }, "the second waits")

	require.ErrorIs(t, p.Close(), publisher.ErrCloseTimeout)

	err = await.Receive(t, inFlight, "Publish in flight")
	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, publisher.ErrPublisherClosed, "which means that nothing was written")
	err = await.Receive(t, waiting, "Publish that waited")
	require.ErrorIs(t, err, publisher.ErrPublisherClosed)
	assert.Equal(t, []int{0}, failureOf(t, err, order1).NotWritten)
}

func TestShutdownWaitsAsLongAsItsContext(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p, err := publisher.NewPublisher(publisher.Config{Journal: s.Journal, CloseTimeout: time.Nanosecond}, nil)
	require.NoError(t, err)
	arrived, release := s.wire.hold()
	result := async(p, "order", messageTo(order1, "x"))
	await.End(t, arrived, "the commit")
	closed := make(chan error, 1)
	go func() { closed <- p.Shutdown(t.Context()) }()
	eventually(t, func() bool {
		return errors.Is(p.Publish("order"), publisher.ErrPublisherClosed)
	}, "Shutdown has begun")
	release()
	require.NoError(t, await.Receive(t, result, "Publish"))
	require.NoError(t, await.Receive(t, closed, "Shutdown"))

	p, err = publisher.NewPublisher(publisher.Config{Journal: s.Journal}, nil)
	require.NoError(t, err)
	arrived, _ = s.wire.hold()
	result = async(p, "order", messageTo(order1, "y"))
	await.End(t, arrived, "the commit, which will not get through")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Shutdown(ended), publisher.ErrCloseTimeout)
	require.ErrorIs(t, await.Receive(t, result, "Publish"), journal.ErrOutcomeUnknown)
}

func TestShutdownOfAnIdlePublisherSucceedsWithAnEndedContext(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 {
		p, err := publisher.NewPublisher(publisher.Config{Journal: s.Journal}, nil)
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(ended))
	}
}

func TestCloseWhileManyPublishLeavesWhatSucceededAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	var mu sync.Mutex
	var succeeded []string
	begun := make(chan struct{}, 10_000)

	var all sync.WaitGroup
	for _, g := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; ; i++ {
				payload := g + strings.Repeat("'", i)
				err := p.Publish("order", messageTo(order1, payload))
				if errors.Is(err, publisher.ErrPublisherClosed) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				succeeded = append(succeeded, payload)
				mu.Unlock()
				begun <- struct{}{}
			}
		}()
	}
	for range 50 {
		await.End(t, begun, "some messages to be published")
	}
	require.NoError(t, p.Close())
	all.Wait()

	assert.ElementsMatch(t, succeeded, s.payloads(order1))
}

// This test is not parallel. Parallel tests have not begun, so all goroutines of this package
// belong to it.
func TestNoGoroutineOutlivesClose(t *testing.T) {
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	for i := range 20 {
		require.NoError(t, p.Publish("order", messageTo(aggregate.ID{Value: strings.Repeat("x", i+1)}, "x")))
	}
	require.NoError(t, p.Publish("order", messagesTo(order1, "m", 300)...))

	require.NoError(t, p.Close())

	// A goroutine may end a moment after Close has returned.
	eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !strings.Contains(string(stacks), "publisher.(*Publisher)")
	}, "no goroutine of a Publisher is left")
}
