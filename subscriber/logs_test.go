package subscriber_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// logged subscribes with a logger that keeps what was logged.
func logged(t *testing.T, config subscriber.Config) (*watermill.CaptureLoggerAdapter, *subscriber.Subscriber, <-chan *message.Message) {
	t.Helper()
	log := watermill.NewCaptureLogger()
	sub, err := subscriber.NewSubscriber(config, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	return log, sub, messages
}

// attempts returns the attempts of the lines with a message.
func attempts(log *watermill.CaptureLoggerAdapter, msg string) (attempts []any) {
	for _, line := range log.Captured()[watermill.ErrorLogLevel] {
		if line.Msg == msg {
			attempts = append(attempts, line.Fields["attempts"])
		}
	}
	return attempts
}

const handlerFailed = "Handler failed, will deliver the event again"

func TestAFailureOfAHandlerIsLoggedWithItsEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.NackResendSleep, config.MaxNackResendSleep = time.Second, time.Hour
		log, _, messages := logged(t, config)
		answerWith(messages, func(*message.Message) error { return errDeclined })

		time.Sleep(2 * time.Second)

		lines := log.Captured()[watermill.ErrorLogLevel]
		require.NotEmpty(t, lines)
		assert.Equal(t, handlerFailed, lines[0].Msg)
		require.ErrorIs(t, lines[0].Err, errDeclined)
		assert.Equal(t, watermill.LogFields{
			"topic": "account", "consumer_group": "group", "aggregate_id": "x", "number": uint64(1), "event_type": "deposited",
			"attempts": 1, "pause": time.Second,
		}, lines[0].Fields)
	})
}

// An event is retried until its handler accepts it, so each further failure is logged less often.
func TestAnEventThatKeepsFailingDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.NackResendSleep, config.MaxNackResendSleep = time.Second, time.Second
		log, sub, messages := logged(t, config)
		answerWith(messages, func(*message.Message) error { return errDeclined })

		time.Sleep(5 * time.Minute)

		assert.Greater(t, sub.Stats().Nacked, uint64(200))
		assert.Equal(t, []any{1, 2, 3, 4, 8, 16, 32, 64, 128, 192}, attempts(log, handlerFailed)[:10])
		assert.Less(t, len(attempts(log, handlerFailed)), 15)
	})
}

func TestAnEventThatCannotBeReadDoesNotFillTheLogEither(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.Timing.PollInterval, config.Timing.MaxPollInterval, config.Timing.CommitInterval = time.Second, time.Second, time.Second
		config.Unmarshaler = unmarshaler(func(*journal.Record) (*message.Message, error) { return nil, errDeclined })
		log, _, _ := logged(t, config)

		time.Sleep(time.Hour)

		lines := attempts(log, "Aggregate is blocked, will try again")
		assert.Equal(t, []any{1, 2, 3, 4, 8, 16, 32, 64}, lines[:8])
		assert.Less(t, len(lines), 12)
		assert.Equal(t, uint64(1), log.Captured()[watermill.ErrorLogLevel][0].Fields["number"])
	})
}

func TestAHandlerThatDoesNotAnswerInTimeIsLogged(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.AckDeadline = time.Minute
		log, _, messages := logged(t, config)
		receive(t, messages)

		time.Sleep(time.Minute + time.Second)

		assert.Equal(t, []any{1}, attempts(log, handlerFailed))
		assert.ErrorContains(t, log.Captured()[watermill.ErrorLogLevel][0].Err, "not acked in time")
	})
}

func TestAHandlerThatFailsDuringCloseIsLogged(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		log, sub, messages := logged(t, quick(j))
		msg := receive(t, messages)
		time.AfterFunc(time.Second, func() {
			subscriber.SetNackReason(msg.Context(), errDeclined)
			msg.Nack()
		})

		closes(t, sub)

		assert.Equal(t, []any{1}, attempts(log, "Handler failed while the shard ends; the event is delivered again"))
	})
}

func TestAttemptsAtADeferredEventAreLogged(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Minute, MaxPause: time.Minute, Attempts: 4})
		// This keeps the number of polls in ten fake minutes small.
		config.Timing.PollInterval, config.Timing.MaxPollInterval = time.Second, time.Second
		log, _, messages := logged(t, config)
		answerWith(messages, func(*message.Message) error { return errDeclined })

		time.Sleep(10 * time.Minute)

		assert.Equal(t, []any{2, 3}, attempts(log, handlerFailed), "the first says that it is deferred")
		assert.Equal(t, []any{4}, attempts(log, "Deferred event is given up; its record stays"))
	})
}

func TestHandlersThatDoNotReturnBeforeCloseAreNamed(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 2)
		config := quick(j)
		for n := range 15 {
			write(t, j, strconv.Itoa(n), 0, 1)
		}
		log, sub, messages := logged(t, config)
		for range 15 {
			receive(t, messages)
		}
		time.Sleep(time.Minute)

		closes(t, sub)

		var named []watermill.LogFields
		for _, line := range log.Captured()[watermill.ErrorLogLevel] {
			assert.Equal(t, "Handler has not returned within CloseTimeout; its event is delivered again", line.Msg)
			assert.NotContains(t, named, line.Fields)
			named = append(named, line.Fields)
		}
		require.Len(t, named, 10, "not all of them, in case that there are many")
		for _, field := range []string{"topic", "consumer_group", "aggregate_id", "number", "event_type", "attempts"} {
			assert.Contains(t, named[0], field)
		}
		assert.Equal(t, time.Minute+config.CloseTimeout, named[0]["handling"].(time.Duration).Round(time.Second))
	})
}
