package subscriber_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/subscriber"
)

func TestHealthyEventsBeforeACorruptOneDoNotGoToThePoisonQueue(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	write(t, j, "x", 0, 10)
	corrupt(t, client, "account-x-6")
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	config := quick(j)
	config.Failures = subscriber.PoisonQueue(1, queue, "poison")
	sub, messages := subscribe(t, config)

	assert.Equal(t, append(expect("x", 1, 5), expect("x", 7, 10)...), receiveAll(t, messages, 9))

	assert.EqualValues(t, 1, sub.Stats().Poisoned)
}

func TestAnAggregateIsParkedWithItsCorruptEventAndNotBefore(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	write(t, j, "x", 0, 10)
	corrupt(t, client, "account-x-6")
	config := quick(j)
	config.Failures = subscriber.Park(1)
	sub, messages := subscribe(t, config)

	assert.Equal(t, expect("x", 1, 5), receiveAll(t, messages, 5))

	eventually(t, "it is parked", func() bool { return sub.Stats().Parked == 1 })
	behind := progress(t, j).Behind
	if assert.Len(t, behind, 1) && assert.NotNil(t, behind[0].Parked) {
		assert.EqualValues(t, 6, behind[0].Parked.Number)
	}
}
