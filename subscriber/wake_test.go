package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestACommitDuringTheFirstReadIsDeliveredAtOnce(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for name, subscribe := range kinds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) { commitDuringTheFirstRead(t, layout, subscribe) })
			})
		}
	})
}

func commitDuringTheFirstRead(t *testing.T, layout journal.Layout, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Shards: 1, Layout: layout})
	read, committed := make(chan struct{}), make(chan struct{})
	db.Inject(dynamotest.PauseReply(func(context.Context) {
		close(read)
		<-committed
	}), dynamotest.On("Query"), dynamotest.Index("journal-tail-index"), dynamotest.Times(1))
	config := quick(j)
	config.Timing.PollInterval, config.Timing.MaxPollInterval = time.Hour, time.Hour
	_, messages := subscribe(t, config)
	<-read // the reply is without the event
	write(t, j, "x", 0, 1)
	began := time.Now()
	close(committed)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
	assert.Zero(t, time.Since(began), "no poll was necessary")
}
