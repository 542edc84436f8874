package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

var errDeclined = errors.New("the card was declined")

// answerWith answers messages by a handler under the middleware that reports its errors.
func answerWith(messages <-chan *message.Message, handle func(*message.Message) error) {
	handler := subscriber.NackReason(func(msg *message.Message) ([]*message.Message, error) { return nil, handle(msg) })
	go func() {
		for msg := range messages {
			go answer(msg, func(msg *message.Message) error {
				_, err := handler(msg)
				return err
			})
		}
	}()
}

func TestWhatIsGivenUpHasTheHandlersErrorForAReason(t *testing.T) {
	t.Parallel()
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	for name, of := range map[string]struct {
		policy subscriber.FailurePolicy
		reason func(*testing.T, *journal.Journal) string
		want   string
	}{
		"skip": {subscriber.Skip(1), func(t *testing.T, j *journal.Journal) string {
			eventually(t, "it is skipped", func() bool { return len(skipped(t, j)) == 1 })
			return skipped(t, j)[0].Reason
		}, "the card was declined, once"},
		"park": {subscriber.Park(2), func(t *testing.T, j *journal.Journal) (reason string) {
			eventually(t, "it is parked", func() bool {
				for parked, err := range groups.Of(j, "group", topic).Parked(context.Background(), aggregate.ID{}) {
					if err == nil {
						reason = parked.Parked.Reason
					}
				}
				return reason != ""
			})
			return reason
		}, "the card was declined, 2 times"},
		"stop": {subscriber.Stop(2), func(t *testing.T, j *journal.Journal) string {
			eventually(t, "it is stopped", func() bool { return state(t, j).Stopped != nil })
			return state(t, j).Stopped.Reason
		}, "the card was declined, 2 times"},
		"poison queue": {subscriber.PoisonQueue(2, queue, "poison"), func(t *testing.T, _ *journal.Journal) string {
			poisoned, err := queue.Subscribe(t.Context(), "poison")
			require.NoError(t, err)
			return receive(t, poisoned).Metadata.Get("reason_poisoned")
		}, "the card was declined, 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := setup(t, 1)
			write(t, j, "x", 0, 1)
			config := quick(j)
			config.Failures = of.policy
			_, messages := subscribe(t, config)
			answerWith(messages, func(*message.Message) error { return errDeclined })
			eventually(t, "it is a member", func() bool { return len(membership(t, j).Members) > 0 })
			assert.Equal(t, of.want, of.reason(t, j))
		})
	}
}

func TestTheReasonIsThatOfTheLastAttempt(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		answer func(*message.Message)
		want   string
	}{
		"nacked":        {func(msg *message.Message) { msg.Nack() }, "the message was nacked without a reason (see subscriber.NackReason), 2 times"},
		"with a reason": {func(msg *message.Message) { subscriber.SetNackReason(msg.Context(), errDeclined); msg.Nack() }, "the card was declined, 2 times"},
		"taken back": {func(msg *message.Message) {
			subscriber.SetNackReason(msg.Context(), errDeclined)
			subscriber.SetNackReason(msg.Context(), nil)
			msg.Nack()
		}, "the message was nacked without a reason (see subscriber.NackReason), 2 times"},
		"not answered":      {func(*message.Message) {}, "the message was not acked in time, 2 times"},
		"not answered, why": {func(msg *message.Message) { subscriber.SetNackReason(msg.Context(), errDeclined) }, "the message was not acked in time: the card was declined, 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				j := setup(t, 1)
				write(t, j, "x", 0, 2)
				config := quick(j)
				config.AckDeadline = 500 * time.Millisecond
				config.Failures = subscriber.Skip(2)
				_, messages := subscribe(t, config)
				first := receive(t, messages)
				subscriber.SetNackReason(first.Context(), errors.New("that of an earlier attempt"))
				first.Nack()
				of.answer(receive(t, messages))
				assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
				assert.Equal(t, of.want, skipped(t, j)[0].Reason)
			})
		})
	}
	subscriber.SetNackReason(t.Context(), errDeclined) // the context of no message
}

// A handler may have received these errors from another group, or when it loaded another aggregate.
func TestAHandlersErrorIsNotTakenForTheSubscribersOwn(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"fenced":  fmt.Errorf("elsewhere: %w", subscriber.ErrFenced),
		"corrupt": &journal.CorruptItemError{Aggregate: account("another"), Number: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := setup(t, 1)
			write(t, j, "x", 0, 3)
			config := quick(j)
			config.Failures = subscriber.Skip(2)
			sub, messages := subscribe(t, config)
			answerWith(messages, func(msg *message.Message) error {
				if string(msg.Payload) == "x/2" {
					return err
				}
				return nil
			})
			eventually(t, "it goes on", func() bool { return sub.Stats().Acked == 2 })
			assert.Equal(t, err.Error()+", 2 times", skipped(t, j)[0].Reason)
			assert.EqualValues(t, 1, sub.Shards()[0].Epoch)
		})
	}
}
