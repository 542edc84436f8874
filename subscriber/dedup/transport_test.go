package dedup_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// transport delivers at least once. It repeats failed messages, and sometimes others. A log repeats
// them in place, and a queue delivers in any order.
type transport struct {
	random *rand.Rand
	queue  []*message.Message
	log    bool
}

// next removes and returns a message: the first one of a log, and any one of a queue.
func (tr *transport) next() *message.Message {
	at := 0
	if !tr.log {
		at = tr.random.IntN(len(tr.queue))
	}
	msg := tr.queue[at]
	tr.queue = append(tr.queue[:at:at], tr.queue[at+1:]...)
	return msg
}

func (tr *transport) back(msg *message.Message) {
	if tr.log {
		tr.queue = append([]*message.Message{msg}, tr.queue...)
	} else {
		tr.queue = append(tr.queue, msg)
	}
}

// The transport repeats messages and DynamoDB refuses requests. Still each event has its effect, in
// order. No event is handled again after the middleware has reported it as handled.
func TestOverATransportThatRepeatsAndReordersEventsAreHandledInOrder(t *testing.T) {
	t.Parallel()
	const aggregates, events = 4, 12
	for seed := range testdb.Seeds(8) {
		for _, kind := range []string{"queue", "log"} {
			t.Run(fmt.Sprint(kind, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				db := faulty(t, dynamotest.WithSeed(seed))
				processes := []*dedup.Positions{
					newPositions(t, db.Client(), dedup.PositionsConfig{}), newPositions(t, db.Client(), dedup.PositionsConfig{}),
				}
				tr := transport{random: rand.New(rand.NewPCG(seed, 1)), log: kind == "log"}
				for n := range events {
					for id := range aggregates {
						tr.queue = append(tr.queue, forwarded(t, order(fmt.Sprint(id)), uint64(n+1)))
					}
				}

				calm := db.Storm(0.03)
				effects, reported := map[string][]string{}, map[string]bool{}
				var handlings int
				handler := func(msg *message.Message) ([]*message.Message, error) {
					require.False(t, reported[string(msg.Payload)], "%s was reported as handled", msg.Payload)
					if tr.random.IntN(5) == 0 {
						return nil, errors.New("not now")
					}
					handlings++
					id := msg.Metadata.Get("aggregate_id")
					if done := effects[id]; len(done) == 0 || done[len(done)-1] != string(msg.Payload) {
						effects[id] = append(done, string(msg.Payload))
					}
					return nil, nil
				}
				for len(tr.queue) > 0 {
					msg := tr.next()
					_, err := processes[tr.random.IntN(len(processes))].Middleware(handler)(msg)
					switch {
					case err != nil:
						tr.back(msg)
					case tr.random.IntN(4) == 0: // the ack is lost
						reported[string(msg.Payload)] = true
						tr.back(msg)
					default:
						reported[string(msg.Payload)] = true
					}
				}
				calm()

				for id := range aggregates {
					var want []string
					for n := range events {
						want = append(want, fmt.Sprintf("%d#%d", id, n+1))
					}
					assert.Equal(t, want, effects[fmt.Sprint(id)])
					assert.EqualValues(t, events, last(t, processes[0], order(fmt.Sprint(id))))
				}
				assert.GreaterOrEqual(t, handlings, aggregates*events)
			})
		}
	}
}

// A queue delivers messages in parallel, also duplicates and messages of one aggregate.
func TestSideBySideInOneProcessEachEventIsHandledOnceAndInOrder(t *testing.T) {
	t.Parallel()
	const aggregates, events, workers = 3, 10, 8
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			p := newPositions(t, database(t), dedup.PositionsConfig{})
			queue := make(chan *message.Message, 2*aggregates*events)
			var waiting sync.WaitGroup
			for _, n := range rand.New(rand.NewPCG(seed, 2)).Perm(2 * aggregates * events) {
				waiting.Add(1)
				queue <- forwarded(t, order(fmt.Sprint(n%aggregates)), uint64(n/aggregates%events+1))
			}
			var got handled
			for range workers {
				go func() {
					for msg := range queue {
						if _, err := p.Middleware(got.handle)(msg); err != nil {
							assert.ErrorAs(t, err, new(*dedup.GapError))
							queue <- msg
							continue
						}
						waiting.Done()
					}
				}()
			}
			waiting.Wait()
			close(queue)

			by := map[byte][]string{}
			for _, payload := range got.payloads {
				by[payload[0]] = append(by[payload[0]], payload)
			}
			for id := range aggregates {
				var want []string
				for n := range events {
					want = append(want, fmt.Sprintf("%d#%d", id, n+1))
				}
				assert.Equal(t, want, by[fmt.Sprint(id)[0]])
			}
		})
	}
}
