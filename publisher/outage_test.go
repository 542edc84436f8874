package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// errConnectionRefused is the error of the SDK for a refused connection.
var errConnectionRefused = &smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}

func TestAnOutageIsWaitedOut(t *testing.T) {
	t.Parallel()
	// With this budget the journal makes one attempt, so the outage is longer than its retries.
	eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		down := 10 // requests
		refuse := func() error {
			if down--; down >= 0 {
				return errConnectionRefused
			}
			return nil
		}
		require.NoError(t, p.Publish("order", messageTo(order1, "known")))
		s.wire.set(func(w *wire) {
			w.onRead = refuse
			w.onWrite = func(context.Context, int) error {
				if down == 10 {
					down--
					return errLostReply // the outage interrupts the request
				}
				return refuse()
			}
		})

		require.NoError(t, p.Publish("order", messagesTo(order1, "m", 3)...))

		assert.Negative(t, down, "the database must have been down")
		assert.Equal(t, []string{"known", "m0", "m1", "m2"}, s.payloads(order1))
	})
}

func TestAnOutageOfTheServiceThatHasTheCredentialsIsWaitedOut(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	var down atomic.Int64
	away := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	client := dynamodb.New(s.client.Options(), func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			if down.Add(-1) >= 0 {
				return aws.Credentials{}, away
			}
			return s.client.Options().Credentials.Retrieve(ctx)
		})
	})
	j := testjournal.Open(t, client, journal.Config{RetryBudget: time.Nanosecond})
	down.Store(10)

	require.NoError(t, s.publisher(publisher.Config{Journal: j}).Publish("order", messageTo(order1, "x")))

	assert.Negative(t, down.Load())
	assert.Equal(t, []string{"x"}, s.payloads(order1))
}

func TestAnOutageThatOutlastsTheCommitTimeoutSaysThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{CommitTimeout: 100 * time.Millisecond})
		s.wire.set(func(w *wire) { w.onRead = func() error { return errConnectionRefused } })

		began := time.Now()
		err := p.Publish("order", messageTo(order1, "x"))

		require.ErrorContains(t, err, "CommitTimeout")
		assert.Equal(t, 100*time.Millisecond, time.Since(began))
		require.ErrorContains(t, err, "connection refused")
		require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
		assert.Equal(t, []int{0}, failureOf(t, err, order1).NotWritten)
	})
}

// An attempt whose reply was lost may still reach the database, before the next one or after it.
func TestAnAttemptThatComesLateIsWrittenInsteadOfTheNextOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, beforeTheNext := range map[string]bool{"before the next": true, "after the next": false} {
		for name, expects := range map[string]bool{name: false, name + ", of an expected version": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachStoreInFakeTime(t, journal.Config{}, func(t *testing.T, s *store) {
					proxy := dynamotest.NewProxy(t, s.client)
					first := proxy.Inject(dynamotest.Late(), dynamotest.On(s.commits()), dynamotest.Times(1))
					pause := dynamotest.PauseReply
					if beforeTheNext {
						pause = dynamotest.Pause
					}
					arrive := pause(func(context.Context) { first.Arrive() })
					proxy.Inject(arrive, dynamotest.On(s.commits()), dynamotest.After(1), dynamotest.Times(1))
					recording := proxy.Record()
					j := testjournal.Open(t, proxy.Client(), journal.Config{RetryBudget: time.Nanosecond})
					p := s.publisher(publisher.Config{Journal: j})
					msg := messageTo(order1, "x")
					if expects {
						publisher.SetExpectedVersion(msg, 0)
					}

					began := time.Now()
					require.NoError(t, p.Publish("order", msg))
					require.NoError(t, p.Publish("order", messageTo(order1, "y")))
					assert.Less(t, time.Since(began), time.Second, "the second attempt knows the outcome")

					var late []error // results of the first attempt
					for _, call := range recording.Calls(s.commits()) {
						if call.Late {
							late = append(late, call.Err)
						}
					}
					require.Len(t, late, 1, "the first attempt must have reached the database")
					assert.Equal(t, beforeTheNext, late[0] == nil, "the one that is there first is written: %v", late[0])
					assert.Equal(t, []string{"x", "y"}, s.payloads(order1))
				})
			})
		}
	}
}

func TestNothingIsLostOrDoubledWhenTheJournalGivesUpAtOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(5, 6))
		lost := func() error {
			mu.Lock()
			defer mu.Unlock()
			if random.IntN(100) < 20 {
				return errLostReply
			}
			return nil
		}
		s.wire.set(func(w *wire) {
			w.onWrite = func(context.Context, int) error { return lost() } // the request
			w.onReply = func(int) error { return lost() }                  // the reply
		})
		rival := s.publisher(publisher.Config{Journal: s.another()})
		p := s.publisher(publisher.Config{})

		var all sync.WaitGroup
		for g := range 6 {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range 10 {
					to := map[bool]*publisher.Publisher{true: p, false: rival}[g%3 > 0]
					assert.NoError(t, to.Publish("order", []*message.Message{
						messageTo(aggregate.ID{Value: "1"}, fmt.Sprintf("%d/%d", g, 2*i)),
						messageTo(aggregate.ID{Value: "1"}, fmt.Sprintf("%d/%d", g, 2*i+1)),
					}...))
				}
			}()
		}
		all.Wait()

		assertEachOnceInOrder(t, s.payloads(order1), 6, 20)
	})
}
