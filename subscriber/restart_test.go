package subscriber_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestASubscriberKilledOrClosedAtRandomPointsLosesNothingAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			restarts(t, layouts[seed%2], rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func restarts(t *testing.T, layout journal.Layout, random *rand.Rand) {
	const aggregates, rounds = 8, 5
	client := createIn(t, layout, 4)
	writer := open(t, client)
	written := make([]int, aggregates)
	d := &deliveries{last: map[string]uint64{}}

	done := func() bool {
		for i, n := range written {
			if d.has(fmt.Sprint("a", i)) != uint64(n) {
				return false
			}
		}
		return true
	}
	for round := range rounds {
		for range 10 {
			i, n := random.IntN(aggregates), 1+random.IntN(12)
			write(t, writer, fmt.Sprint("a", i), written[i], n)
			written[i] += n
		}
		p := &process{Client: client}
		config := quick(open(t, p))
		config.Timing.LeaseDuration = 2 * time.Second // a renewal may take long on a busy emulator
		config.Timing.CommitInterval = time.Duration(1+random.IntN(50)) * time.Millisecond
		config.Timing.BehindAfter = time.Duration(1+random.IntN(100)) * time.Millisecond
		config.Timing.TrailingDelay = time.Duration(1+random.IntN(300)) * time.Millisecond
		config.CloseTimeout = time.Millisecond
		config.BufferBytes = 1 << (12 + random.IntN(10))
		sub, messages := subscribe(t, config, subscriber.CursorInterval(time.Duration(1+random.IntN(100))*time.Millisecond))

		last, hanging := round == rounds-1, 0
		for left := random.IntN(80); left > 0 || last && !done(); left-- {
			msg := receiveWithin(t, messages, hanging > 0)
			switch {
			case msg == nil:
				left = 0 // all other events are handled
			case !last && hanging < 3 && random.IntN(10) == 0:
				hanging++ // the handler never answers
			case random.IntN(10) == 0:
				msg.Nack()
			default:
				require.NoError(t, d.note(msg))
				msg.Ack()
			}
			if msg != nil && (done() || hanging > 0 && random.IntN(20) == 0) {
				break
			}
		}
		if random.IntN(2) == 0 {
			p.kill() // no later request of Close reaches the tables
		}
		require.NoError(t, sub.Close())
	}
	assert.True(t, done())
}

// receiveWithin returns the next message, or nil if none is delivered in time.
func receiveWithin(t *testing.T, messages <-chan *message.Message, maybeNone bool) *message.Message {
	t.Helper()
	if !maybeNone {
		return receive(t, messages)
	}
	select {
	case msg := <-messages:
		return msg
	case <-time.After(300 * time.Millisecond):
		return nil
	}
}

func TestTheCursorDoesNotPassAnAckThatCouldNotBeStored(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	config := quick(open(t, &stubbornClient{Client: client, sortKey: "position/x-0"}))
	config.Timing.TrailingDelay = 100 * time.Millisecond
	write(t, j, "x", 0, 1)
	first, messages := subscribe(t, config)
	receiveAll(t, messages, 1)
	for i := range 20 { // dated later, so that the cursor can move
		write(t, j, "y", i, 1)
		receiveAll(t, messages, 1)
		time.Sleep(20 * time.Millisecond)
	}
	require.NoError(t, first.Close())

	_, messages = subscribe(t, quick(j))
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}
