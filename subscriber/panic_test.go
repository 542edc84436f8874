package subscriber_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// unfit fails on the events of aggregate x.
type unfit struct {
	fail func() (*message.Message, error)
}

func (u unfit) Unmarshal(r *journal.Record) (*message.Message, error) {
	if r.Aggregate.Value == "x" {
		return u.fail()
	}
	return subscriber.DefaultUnmarshaler{}.Unmarshal(r)
}

type panickingEncoding struct{}

func (panickingEncoding) Name() string  { return "panicking" }
func (panickingEncoding) Overhead() int { return 0 }

func (panickingEncoding) Encode(_ context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	return payload, at.Aggregate.Value == "x", nil
}

func (panickingEncoding) Decode(context.Context, journal.Place, []byte) ([]byte, error) {
	panic("a bug")
}

type panickingPublisher struct{ message.Publisher }

func (panickingPublisher) Publish(string, ...*message.Message) error { panic("a bug") }

// panickingStore panics for aggregate x, and keeps nothing.
type panickingStore struct{}

func (panickingStore) Claim(_ context.Context, _ subscriber.GroupKey, id aggregate.ID, _ uint64) (position uint64, found bool, err error) {
	if id.Value == "x" {
		panic("a bug")
	}
	return 0, false, nil
}

func (panickingStore) Advance(context.Context, subscriber.GroupKey, aggregate.ID, uint64, uint64, uint64) error {
	return nil
}

func TestAPanicOfTheApplicationBlocksOnlyItsAggregate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*subscriber.Config){
		"of the Unmarshaler": func(c *subscriber.Config) {
			c.Unmarshaler = unfit{func() (*message.Message, error) { panic("a bug") }}
		},
		"after no message": func(c *subscriber.Config) {
			c.Unmarshaler = unfit{func() (*message.Message, error) { return nil, nil }}
		},
		"of an encoding": func(*subscriber.Config) {},
		"of the poison queue": func(c *subscriber.Config) {
			c.Failures = subscriber.PoisonQueue(1, panickingPublisher{}, "poison")
		},
		"of the PositionStore": func(c *subscriber.Config) { c.Positions = panickingStore{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 1)
			config := journal.Config{}
			if name == "of an encoding" {
				config.Encodings = []journal.Encoding{panickingEncoding{}}
			}
			j := testjournal.Open(t, client, config)
			write(t, j, "x", 0, 1)
			write(t, j, "y", 0, 3)
			sub := quick(j)
			change(&sub)
			member, messages := subscribe(t, sub)
			handled := make(chan string, 100)
			go func() {
				for msg := range messages {
					if id, _, _ := subscriber.AggregateFromContext(msg.Context()); id.Value == "x" {
						msg.Nack()
						continue
					}
					msg.Ack()
					handled <- string(msg.Payload)
				}
			}()
			for range 3 {
				await.Receive(t, handled, "an event of the other aggregate")
			}
			eventually(t, "its own aggregate is blocked", func() bool {
				for _, shard := range member.Shards() {
					if shard.Blocked == 1 {
						return true
					}
				}
				return false
			})
			assert.NoError(t, member.Close())
		})
	}
}
